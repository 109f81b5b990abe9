"""Projections: partitions, then scores and the bands of scores that have names."""

from __future__ import annotations

import math
from collections.abc import Mapping

from headway.router.config.document.projections import (
    ProjectionMapping,
    ProjectionMappingOutput,
    Projections,
    ProjectionScore,
    ProjectionScoreInput,
)
from headway.router.observation import Observation, Observations
from headway.router.projections.graph import ordered
from headway.router.projections.partitions import keep_one
from headway.router.signals.kind import Recipe
from headway.router.truth import Truth

TYPE = "projection"
_PARTITIONED = {"domain": "domains", "embedding": "embeddings"}


class RecipeProjections:
    """The projections of one recipe. A signal that failed counts as one that does not match."""

    def __init__(self, projections: Projections, kinds: Mapping[str, str]) -> None:
        """`kinds` has the signal type (domain, embedding) of each member of a partition. Raises ProjectionCycleError."""
        self._partitions = [(partition, kinds.get(partition.members[0], "domain")) for partition in projections.partitions or ()]
        self._parts = ordered(projections)

    def apply(self, observations: Observations) -> Mapping[str, float]:
        for partition, kind in self._partitions:
            keep_one(partition, kind, observations)
        scores: dict[str, float] = {}
        for part in self._parts:
            if isinstance(part, ProjectionScore):
                scores[part.name] = sum(given.weight * _read(given, observations, scores) for given in part.inputs)
            elif part.source in scores:
                observations.add(bands(part, scores[part.source]))
        return scores


def _read(given: ProjectionScoreInput, observations: Observations, scores: Mapping[str, float]) -> float:
    """The number of one input, before its weight."""
    if given.type == "kb_metric":
        metric = observations.get("kb_metric", f"{given.kb}:{given.metric}")
        return metric.value or 0.0 if metric is not None else 0.0
    name = given.name or ""
    if given.type == TYPE and given.value_source != "confidence":
        return scores.get(name, 0.0)
    found = observations.get(given.type, name)
    if given.value_source in ("raw", "score"):
        return _raw(given.type, name, found, observations)
    holds = found is not None and found.truth is Truth.TRUE
    if given.value_source == "confidence":
        return (1.0 if found.confidence is None else found.confidence) if found is not None and holds else given.miss
    return given.match if holds else given.miss


def _raw(type: str, name: str, found: Observation | None, observations: Observations) -> float:
    """What the signal measured: also where its rule does not hold. `rule:label` reads one label of a rule, `rule` alone what all its levels share."""
    if found is None and ":" in name:
        rule, _, label = name.rpartition(":")
        labelled = observations.get(type, rule)
        return labelled.labels.get(label, 0.0) if labelled is not None else 0.0
    if found is None:
        found = next((each for each in observations if each.kind == type and each.name.startswith(f"{name}:")), None)
    if found is None or found.truth is Truth.UNKNOWN:
        return 0.0
    if found.value is not None:
        return found.value
    return found.confidence or 0.0


def bands(mapping: ProjectionMapping, score: float) -> list[Observation]:
    """All outputs of `mapping`, with the truth that `score` gives them."""
    found, taken = [], False
    for output in mapping.outputs:
        holds = output.holds(score) and not (taken and mapping.method == "threshold_bands")
        taken = taken or holds
        found.append(Observation(TYPE, output.name, Truth.of(holds), _confidence(mapping, output, score) if holds else None, score))
    return found


def _confidence(mapping: ProjectionMapping, output: ProjectionMappingOutput, score: float) -> float | None:
    """sigmoid(slope * distance from the nearest end of the band): 0.5 at an end, more inside. None without calibration."""
    if mapping.calibration is None:
        return None
    distance = output.distance(score)
    return 1.0 if distance is None else 1.0 / (1.0 + math.exp(-min(mapping.calibration.slope * distance, 700.0)))


def compile_projections(recipe: Recipe) -> RecipeProjections:
    """Raises ProjectionCycleError."""
    routing = recipe.routing
    kinds = {rule.name: type for type, collection in _PARTITIONED.items() for rule in getattr(routing.signals, collection, None) or ()}
    return RecipeProjections(routing.projections or Projections(), kinds)
