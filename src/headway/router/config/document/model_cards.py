"""Model cards of a configuration document."""

from __future__ import annotations

from headway.router.config.document.node import Node


class ProviderPresentation(Node):
    logo: str | None = None
    monogram: str | None = None
    monochrome: bool | None = None


class ModelDistribution(Node):
    type: str | None = None
    source: str | None = None
    license: str | None = None


class LoRAAdapter(Node):
    name: str | None = None
    description: str | None = None


class Modalities(Node):
    input: list[str] | None = None
    output: list[str] | None = None


class ModelCard(Node):
    name: str | None = None
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
    context_window_size: int | None = None
    max_output_tokens: int | None = None
    description: str | None = None
    capabilities: list[str] | None = None
    loras: list[LoRAAdapter] | None = None
    modalities: Modalities | None = None
    modality: str | None = None
    tags: list[str] | None = None
