"""Routing of a configuration document."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from headway.router.config.document.decisions import Decision, FallbackPolicy
from headway.router.config.document.deployments import ModelBinding
from headway.router.config.document.model_cards import ModelCard
from headway.router.config.document.names import Name
from headway.router.config.document.node import Node
from headway.router.config.document.projections import Projections
from headway.router.config.document.signals import Signals


class CandidateRequirements(Node):
    capabilities: Literal["declared"] | None = None
    context: Literal["known_limits"] | None = None


class RecipeRouting(Node):
    candidate_requirements: CandidateRequirements | None = None
    model_bindings: dict[str, ModelBinding] | None = None
    signals: Signals | None = None
    projections: Projections | None = None
    decisions: list[Decision] | None = None
    strategy: Literal["priority", "confidence"] | None = None
    fallback: FallbackPolicy | None = None


class Routing(RecipeRouting):
    modelCards: list[ModelCard] | None = None


class Recipe(Node):
    """A routing of its own; it shares providers and model cards, nothing else."""

    name: Name
    description: str | None = None
    routing: RecipeRouting | None = None


class Entrypoint(Node):
    """Names on the public address that mean a recipe."""

    api: Literal["chat", "systemone"] | None = None
    model_names: list[Name] = Field(min_length=1)
    recipe: Name
