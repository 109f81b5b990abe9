"""Model cards of a configuration document."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from headway.router.config.document.node import Node


class ProviderPresentation(Node):
    logo: str
    monogram: str
    monochrome: bool = False


class ModelDistribution(Node):
    type: Literal["open_weights", "proprietary_api", "router_recipe"]
    source: str
    license: str | None = None


class LoRAAdapter(Node):
    name: str = Field(min_length=1)
    description: str | None = None


class Modalities(Node):
    input: list[str] | None = None
    output: list[str] | None = None


class ModelCard(Node):
    """What is known about a model; shared by all recipes. `name` is that of a provider model, its catalog id, or a LoRA of a card."""

    name: str = Field(pattern=r"\S")
    display_name: str | None = None
    publisher: str | None = None
    presentation: ProviderPresentation | None = None
    distribution: ModelDistribution | None = None
    family: str | None = None
    revision: str | None = None
    released_at: str | None = None
    knowledge_cutoff: str | None = None
    lifecycle: str | None = None
    param_size: str | None = None
    context_window_size: int | None = Field(default=None, ge=1)
    max_output_tokens: int | None = Field(default=None, ge=1)
    description: str | None = None
    capabilities: list[str] | None = None
    loras: list[LoRAAdapter] | None = None
    modalities: Modalities | None = None
    modality: str | None = None
    tags: list[str] | None = None
