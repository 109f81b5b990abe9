"""Projections of a configuration document."""

from __future__ import annotations

from typing import Literal

from headway.router.config.document.node import Node


class ProjectionPartition(Node):
    name: str | None = None
    semantics: str | None = None
    temperature: float | None = None
    members: list[str] | None = None
    default: str | None = None


class ProjectionScoreInput(Node):
    type: (
        Literal[
            "keyword",
            "embedding",
            "domain",
            "fact_check",
            "user_feedback",
            "reask",
            "preference",
            "language",
            "context",
            "structure",
            "complexity",
            "modality",
            "authz",
            "jailbreak",
            "safety",
            "pii",
            "kb",
            "conversation",
            "event",
            "input_modality",
            "decision",
            "kb_metric",
            "projection",
        ]
        | None
    ) = None
    name: str | None = None
    kb: str | None = None
    metric: str | None = None
    weight: float | None = None
    value_source: str | None = None
    match: float | None = None
    miss: float | None = None


class ProjectionScore(Node):
    name: str | None = None
    method: str | None = None
    inputs: list[ProjectionScoreInput] | None = None


class ProjectionMappingCalibration(Node):
    method: str | None = None
    slope: float | None = None


class ProjectionMappingOutput(Node):
    name: str | None = None
    lt: float | None = None
    lte: float | None = None
    gt: float | None = None
    gte: float | None = None


class ProjectionMapping(Node):
    name: str | None = None
    source: str | None = None
    method: str | None = None
    calibration: ProjectionMappingCalibration | None = None
    outputs: list[ProjectionMappingOutput] | None = None


class Projections(Node):
    partitions: list[ProjectionPartition] | None = None
    scores: list[ProjectionScore] | None = None
    mappings: list[ProjectionMapping] | None = None
