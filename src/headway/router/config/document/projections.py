"""Projections of a configuration document: what is computed from signals before decisions read them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from headway.router.config.document.letter_case import LOWER_CASE
from headway.router.config.document.names import Name
from headway.router.config.document.node import Node
from headway.router.config.document.numeric_range import NumericRange


class ProjectionPartition(Node):
    """Signals of which one is kept: `exclusive` by their own confidences, `softmax_exclusive` by the softmax of confidence / temperature."""

    name: Name
    semantics: Literal["exclusive", "softmax_exclusive"]
    temperature: float | None = Field(default=None, gt=0)
    members: Annotated[list[Name], Field(min_length=1)]
    default: Name

    @model_validator(mode="after")
    def _fits(self) -> ProjectionPartition:
        if self.default not in self.members:
            raise PydanticCustomError("partition_default", "default must be one of the members, found {default}", {"default": self.default})
        if self.temperature is not None and self.semantics != "softmax_exclusive":
            raise PydanticCustomError("partition_temperature", "temperature goes with softmax_exclusive")
        return self


INPUT_TYPES = (
    "authz",
    "complexity",
    "context",
    "conversation",
    "domain",
    "embedding",
    "event",
    "fact_check",
    "input_modality",
    "jailbreak",
    "kb",
    "kb_metric",
    "keyword",
    "language",
    "modality",
    "pii",
    "preference",
    "projection",
    "reask",
    "safety",
    "structure",
    "systemone",
    "user_feedback",
)  # what a score may add up


def _input_type(found: Any) -> Any:
    return "systemone" if found == "decision" else found


class ProjectionScoreInput(Node):
    """One weighted part of a score. `value_source`: binary adds `match` or `miss`, confidence the confidence of what matched, raw the number that
    the signal measured, score the value of a knowledge base's metric."""

    type: Annotated[Literal[INPUT_TYPES], BeforeValidator(_input_type), LOWER_CASE]  # type: ignore[valid-type]
    name: Name | None = None
    kb: Name | None = None
    metric: Name | None = None
    weight: float
    value_source: Literal["binary", "confidence", "raw", "score"] = "binary"
    match: float = 1.0
    miss: float = 0.0

    @model_validator(mode="after")
    def _says_what_it_reads(self) -> ProjectionScoreInput:
        if self.type == "kb_metric":
            if self.kb is None or self.metric is None or self.name is not None:
                raise PydanticCustomError("score_metric", "a kb_metric input has kb and metric instead of a name")
            if self.value_source not in ("score", "binary"):
                raise PydanticCustomError("score_metric_source", "a kb_metric input has value_source score")
        elif self.name is None or self.kb is not None or self.metric is not None:
            raise PydanticCustomError("score_input", "an input of type {type} has a name; kb and metric belong to kb_metric", {"type": self.type})
        return self


class ProjectionScore(Node):
    name: Name
    method: Literal["weighted_sum"] = "weighted_sum"
    inputs: Annotated[list[ProjectionScoreInput], Field(min_length=1)]


class ProjectionMappingCalibration(Node):
    """Confidence of an output: sigmoid(slope * distance of the score from the nearest end of its band)."""

    method: Literal["sigmoid_distance"] = "sigmoid_distance"
    slope: float = Field(default=10.0, gt=0)


class ProjectionMappingOutput(NumericRange):
    """A band of scores; without ends it holds for every score."""

    name: Name

    def distance(self, score: float) -> float | None:
        """From `score` to the nearest end of the band; None for a band without ends."""
        return min((abs(score - end) for end in self.ends), default=None)


class ProjectionMapping(Node):
    """Bands of a score as names for conditions: the first that holds (`threshold_bands`), or all of them (`multi_emit`)."""

    name: Name
    source: Name
    method: Literal["threshold_bands", "multi_emit"] = "threshold_bands"
    calibration: ProjectionMappingCalibration | None = None
    outputs: Annotated[list[ProjectionMappingOutput], Field(min_length=1)]

    @model_validator(mode="after")
    def _has_outputs(self) -> ProjectionMapping:
        if self.method == "multi_emit" and len(self.outputs) < 2:
            raise PydanticCustomError("mapping_single", "multi_emit needs at least two outputs")
        return self


class Projections(Node):
    partitions: list[ProjectionPartition] | None = None
    scores: list[ProjectionScore] | None = None
    mappings: list[ProjectionMapping] | None = None
