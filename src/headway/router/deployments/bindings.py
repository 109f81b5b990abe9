"""What the bindings of a configuration require of models."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from headway.errors import ConfigError
from headway.router.config.document.deployments import ModelBinding
from headway.router.config.document.document import Document
from headway.router.config.document.routing import RecipeRouting
from headway.router.deployments.fit import CONTRACTS, Requirement
from headway.router.deployments.specification import catalog_of

_MOST_BYTES = 1 << 20


def requirements_of(document: Document) -> list[Requirement]:
    """Of all bindings, the recipes' among them. Raises ConfigError for one that cannot be read."""
    found = [_requirement(consumer, binding, routing, document) for consumer, binding, routing in all_bindings(document)]
    return [requirement for requirement in found if requirement is not None]


def all_bindings(document: Document) -> Iterator[tuple[str, ModelBinding, RecipeRouting | None]]:
    """Consumer, binding, and the routing that has it (None for those of the catalogue)."""
    catalog = catalog_of(document)
    for consumer, binding in ((catalog.bindings if catalog else None) or {}).items():
        yield consumer, binding, document.routing
    for routing in (document.routing, *(recipe.routing for recipe in document.recipes or ())):
        for consumer, binding in ((routing.model_bindings if routing else None) or {}).items():
            yield consumer, binding, routing


def _requirement(consumer: str, binding: ModelBinding, routing: RecipeRouting | None, document: Document) -> Requirement | None:
    contract = CONTRACTS.get(binding.contract)
    if contract is None:
        return None
    surface, kinds = contract
    labels = _labels_of_file(binding.mapping_path, document.place(binding.mapping_path)) if binding.mapping_path else ()
    pair = binding.pair_scorer
    return Requirement(
        binding.deployment, consumer, surface, kinds, binding.head, labels or _labels_of_rule(consumer, routing), ordered=bool(labels),
        exit=(pair.layer, pair.dimension) if pair else None,
        operating_point=binding.operating_point.sha256 if binding.operating_point else None,
    )  # fmt: skip


def _labels_of_rule(consumer: str, routing: RecipeRouting | None) -> tuple[str, ...]:
    """A classifier's rule names the labels that its conditions use."""
    rules = routing.signals.classifiers if routing and routing.signals and consumer.startswith("classifier.") else None
    return next((tuple(rule.labels or ()) for rule in rules or () if f"classifier.{rule.name}" == consumer), ())


def _labels_of_file(path: str, place: Path) -> tuple[str, ...]:
    """`{"label_to_idx": {label: number}}` or `{"idx_to_label": {number: label}}`, whatever stands before `_to_idx`. Raises ConfigError."""
    try:
        with place.open("rb") as file:
            content = json.loads(file.read(_MOST_BYTES))
        numbers = next((value for key, value in content.items() if key.endswith("_to_idx")), None)
        if numbers is None:
            names = next(value for key, value in content.items() if key.startswith("idx_to_"))
            numbers = {label: int(number) for number, label in names.items()}
        return tuple(sorted(numbers, key=numbers.__getitem__))
    except (OSError, ValueError, TypeError, AttributeError, StopIteration) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: str, error: Any) -> ConfigError:
    why = error.strerror if isinstance(error, OSError) else "it is no JSON object with label_to_idx or idx_to_label"
    return ConfigError(f"mapping_path {path} cannot be used: {why}", reason="mapping_invalid", param="mapping_path")
