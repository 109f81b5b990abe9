"""Partitions: of signals that exclude each other, one is kept."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from headway.router.config.document.projections import ProjectionPartition
from headway.router.observation import Observation, Observations
from headway.router.truth import Truth


def keep_one(partition: ProjectionPartition, kind: str, observations: Observations) -> None:
    """Leave TRUE only the member with the highest confidence (the first of equals); the default when nothing holds.

    While members are unknown and none holds, the default is unknown too: it is not known that nothing matched.
    """
    members = [observations.get(kind, name) or Observation(kind, name, Truth.FALSE) for name in partition.members]
    holding = [member for member in members if member.truth is Truth.TRUE]
    if not holding:
        _default(partition, kind, members, observations)
        return
    winner = max(holding, key=_strength)
    if partition.semantics == "softmax_exclusive":
        shares = softmax([_strength(member) for member in holding], partition.temperature or 1.0)
        observations.add([replace(winner, confidence=shares[holding.index(winner)])])
    observations.add(replace(member, truth=Truth.FALSE, confidence=None, evidence={"lost_to": winner.name}) for member in holding if member is not winner)


def _default(partition: ProjectionPartition, kind: str, members: Sequence[Observation], observations: Observations) -> None:
    unknown = next((member for member in members if member.truth is Truth.UNKNOWN), None)
    if unknown is None:
        observations.add([Observation(kind, partition.default, Truth.TRUE, evidence={"default_of": partition.name})])
    else:
        observations.add([Observation(kind, partition.default, Truth.UNKNOWN, reason=unknown.reason)])


def _strength(member: Observation) -> float:
    return 1.0 if member.confidence is None else member.confidence


def softmax(values: Sequence[float], temperature: float) -> list[float]:
    top = max(values)
    weights = [math.exp((value - top) / temperature) for value in values]
    return [weight / sum(weights) for weight in weights]
