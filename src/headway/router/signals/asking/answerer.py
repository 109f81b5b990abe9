"""Who answers a built-in signal: the deployment that is bound to it, else the decision model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headway.errors import ConfigError
from headway.router.deployments.specification import DEFAULT_DECISION_MODEL, declared
from headway.router.signals.asking.label_source import HeadSource, LabelSource, QuestionSource
from headway.router.signals.kind import Recipe

DECISION_CONTRACTS = frozenset({"decision.v1", "decision_task.v1"})
"""Bindings to a decision model, which is asked the built-in question."""
_LABEL_CONTRACTS = frozenset({"label_distribution.v1", "label_scores.v1", "score.v1"})


def decision_model(recipe: Recipe) -> str:
    """The deployment that is asked when nothing else is bound."""
    system = recipe.catalog.system
    chosen = system.decision_model if system else None
    return chosen.deployment if chosen else DEFAULT_DECISION_MODEL


@dataclass(frozen=True, slots=True)
class Bound:
    """Who a consumer is bound to. `contract` is None where only a model was named: it is read in the consumer's usual way."""

    deployment: str
    contract: str | None = None
    head: str | None = None


def binding_of(recipe: Recipe, consumer: str) -> Bound | None:
    """That of the recipe, else of the catalogue, else the model that `global.model_catalog.system` names."""
    found = (recipe.routing.model_bindings or {}).get(consumer) or (recipe.catalog.bindings or {}).get(consumer)
    if found is not None:
        return Bound(found.deployment, found.contract, found.head)
    named = getattr(recipe.catalog.system, consumer, None)
    return Bound(_declared(recipe, consumer, named)) if isinstance(named, str) and named else None


def label_source(recipe: Recipe, consumer: str, question: Mapping[str, Any], *, full: bool = False) -> LabelSource:
    """The bound head, or `question` to the bound or the common decision model. `full`: everything must be read.

    Raises ConfigError for a binding with a contract of another kind.
    """
    binding = binding_of(recipe, consumer)
    if binding is None:
        return QuestionSource(decision_model(recipe), question, full)
    if binding.contract in DECISION_CONTRACTS:
        return QuestionSource(binding.deployment, question, full)
    if binding.contract is not None and binding.contract not in _LABEL_CONTRACTS:
        raise ConfigError(
            f"bindings.{consumer}: a binding does not match the model: contract {binding.contract} gives no labels",
            param=f"bindings.{consumer}.contract",
            fix=f"Use one of {', '.join(sorted(_LABEL_CONTRACTS | DECISION_CONTRACTS))}.",
        )
    return HeadSource(binding.deployment, binding.head)


def _declared(recipe: Recipe, consumer: str, named: str) -> str:
    """The deployment of that name, or the one with that artifact."""
    for name, deployment in declared(recipe.document).items():
        if named in (name, deployment.artifact):
            return name
    raise ConfigError(
        f"global.model_catalog.system.{consumer} is {named!r}, which is neither a deployment nor the artifact of one",
        param=f"global.model_catalog.system.{consumer}",
        fix="Declare it in global.model_catalog.deployments and bind it: bindings." + consumer,
    )
