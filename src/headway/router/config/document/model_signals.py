"""Rules of signals that models answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from headway.router.config.document.node import Node
from headway.router.config.document.rule_tree import RuleNode

Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]
PositiveShare: TypeAlias = Annotated[float, Field(gt=0, le=1)]
Cosine: TypeAlias = Annotated[float, Field(ge=-1, le=1)]
Text: TypeAlias = Annotated[str, Field(pattern=r"\S")]
Label: TypeAlias = Annotated[str, Field(pattern=r"^[^\s:]([^:]*[^\s:])?$")]
"""Trimmed and without a colon, which separates a rule's name from its label."""
UnknownPolicy: TypeAlias = Literal["match", "no_match"]


class PrototypeScoring(Node):
    """Candidates that say nearly the same are merged, and a text is compared with the best few of what is left."""

    enabled: bool = True
    cluster_similarity_threshold: Cosine = 0.9
    max_prototypes: int = Field(default=8, ge=0)  # 0: as many as there are
    best_weight: Share = 0.75  # of the best prototype; the rest is the mean of the best `top_m`
    top_m: int = Field(default=2, ge=1)
    margin_threshold: float = Field(default=0.05, ge=0)  # by how much the best rule must be ahead of the second to match


class EmbeddingRule(Node):
    name: Text
    threshold: float
    candidates: list[Text] = []
    image_candidates: list[Text] = []
    negative_candidates: list[Text] = []
    negative_image_candidates: list[Text] = []
    aggregation_method: Literal["max", "mean", "any"] = "max"
    query_modality: Literal["text", "image"] = "text"
    prototype_scoring: PrototypeScoring | None = None

    @model_validator(mode="after")
    def _has_candidates_and_a_reachable_threshold(self) -> EmbeddingRule:
        if not self.candidates and not self.image_candidates:
            raise PydanticCustomError("no_candidates", "an embedding rule needs candidates or image_candidates")
        bound = 2 if self.negative_candidates or self.negative_image_candidates else 1
        if not -bound <= self.threshold <= bound:
            raise PydanticCustomError("threshold", "threshold must be from -{bound} to {bound}", {"bound": bound})
        return self


class ModelScore(Node):
    absent: ClassVar[Mapping[str, str]] = {"use_reasoning": "set use_reasoning on the modelRefs of decisions"}

    model: str | None = None
    score: float | None = None


class DomainRule(Node):
    """Matches when the detected domain is the rule's name or one of `mmlu_categories`."""

    name: Text
    description: str | None = None
    mmlu_categories: list[str] = []
    model_scores: list[ModelScore] = []


class FactCheckRule(Node):
    name: Literal["needs_fact_check", "no_fact_check_needed"]
    description: str | None = None


class UserFeedbackRule(Node):
    name: Literal["satisfied", "need_clarification", "wrong_answer", "want_different"]
    description: str | None = None


class ReaskRule(Node):
    """Matches when the latest user turn says the same as each of the `lookback_turns` user turns before it."""

    name: Text
    description: str | None = None
    threshold: Share = 0.8
    lookback_turns: int = Field(default=1, ge=1)


class PreferenceRule(Node):
    name: Text
    description: Text
    examples: list[Text] = []
    threshold: Share | None = None


class ComplexityCandidates(Node):
    candidates: list[Text] = []
    image_candidates: list[Text] = []


class ComplexityRule(Node):
    """With candidates: the similarity to the hard ones less that to the easy ones, against `threshold`. Without: a score from 0 (easy) to 1
    (hard), against `hard_above` and `easy_below` (or, for models that score ease, `hard_below` and `easy_above`)."""

    name: Label
    description: str | None = None
    threshold: float = Field(default=0.1, ge=0)
    hard: ComplexityCandidates | None = None
    easy: ComplexityCandidates | None = None
    hard_above: float | None = None
    easy_below: float | None = None
    hard_below: float | None = None
    easy_above: float | None = None
    composer: RuleNode | None = None
    prototype_scoring: PrototypeScoring | None = None

    @model_validator(mode="after")
    def _one_way_to_score(self) -> ComplexityRule:
        if (self.hard is None) != (self.easy is None):
            raise PydanticCustomError("candidates", "hard and easy candidates come together")
        rising, falling = (self.hard_above, self.easy_below), (self.hard_below, self.easy_above)
        if any(bound is not None for bound in rising) and any(bound is not None for bound in falling):
            raise PydanticCustomError("bounds", "use hard_above and easy_below, or hard_below and easy_above, not both pairs")
        return self


class ModalityRule(Node):
    """What the answer should be: text, an image, both."""

    name: Literal["AR", "DIFFUSION", "BOTH"]
    description: str | None = None


class JailbreakRule(Node):
    """Counts as a match when nobody answered, unless `on_unknown: no_match`, and when the input was not read in full."""

    name: Text
    method: Literal["classifier", "contrastive", "hybrid"] = "classifier"
    threshold: float
    include_history: bool = False
    description: str | None = None
    jailbreak_patterns: list[Text] = []
    benign_patterns: list[Text] = []
    direction: Literal["request", "response"] = "request"
    on_unknown: UnknownPolicy | None = None

    @model_validator(mode="after")
    def _has_patterns(self) -> JailbreakRule:
        if self.method != "classifier" and not self.jailbreak_patterns:
            raise PydanticCustomError("patterns", "method {method} needs jailbreak_patterns", {"method": self.method})
        return self


def _selects(chosen: list[str], labels: list[str], field: str) -> None:
    unknown = [label for label in chosen if label not in labels]
    if unknown:
        raise PydanticCustomError("label", "{field} must be among the labels, found {unknown}", {"field": field, "unknown": ", ".join(unknown)})


class SafetyHazardRule(Node):
    """Asked only after an unsafe verdict: the rule matches when one of `categories` reaches `threshold`."""

    absent: ClassVar[Mapping[str, str]] = {"model": "bind a deployment: bindings.safety.<rule>.hazard"}

    labels: list[Label] = Field(min_length=2)
    categories: list[Label] = Field(min_length=1)
    threshold: PositiveShare

    @model_validator(mode="after")
    def _categories_are_labels(self) -> SafetyHazardRule:
        _selects(self.categories, self.labels, "categories")
        return self


class SafetyRule(Node):
    """Matches when the probabilities of `unsafe_labels` sum to `threshold` or more."""

    absent: ClassVar[Mapping[str, str]] = {"model": "bind a deployment: bindings.safety.<rule>"}

    name: Label
    description: str | None = None
    labels: list[Label] = Field(default=["safe", "unsafe"], min_length=2)
    unsafe_labels: list[Label] = Field(default=["unsafe"], min_length=1)
    threshold: PositiveShare
    hazard: SafetyHazardRule | None = None

    @model_validator(mode="after")
    def _unsafe_labels_are_some(self) -> SafetyRule:
        _selects(self.unsafe_labels, self.labels, "unsafe_labels")
        if len(set(self.unsafe_labels)) == len(set(self.labels)):
            raise PydanticCustomError("label", "unsafe_labels must leave a label that is safe")
        return self


class PIIRule(Node):
    """Without a threshold, every span that the model reports counts. Counts as a match when nobody answered, unless `on_unknown: no_match`,
    and when the input was not read in full."""

    name: Text
    threshold: Share | None = None
    pii_types_allowed: list[str] = []
    include_history: bool = False
    source: Literal["tool_result"] | None = None
    description: str | None = None
    on_unknown: UnknownPolicy | None = None


class KBSignalTarget(Node):
    kind: Literal["label", "group"]
    value: Text


class KBSignalRule(Node):
    name: Text
    kb: Text
    target: KBSignalTarget
    match: Literal["best", "threshold"] = "best"


class ClassifierSignalRule(Node):
    """`sequence_classifier` reads a head that `bindings.classifier.<name>` names; `local` and `llm` without such a binding ask the decision
    model for one of `labels`."""

    absent: ClassVar[Mapping[str, str]] = {
        "model_path": "declare a deployment with that artifact and bind it: bindings.classifier.<rule>",
        "use_cpu": "set `device` on its deployment",
        "disable_rationale": "the models that are asked write no rationale",
    }

    name: Label
    description: str | None = None
    type: Literal["local", "llm", "sequence_classifier"]
    model: str | None = None
    labels: list[Label] = Field(min_length=1)
    instructions: str | None = None

    @model_validator(mode="after")
    def _fields_of_its_type(self) -> ClassifierSignalRule:
        if len(set(self.labels)) != len(self.labels):
            raise PydanticCustomError("labels", "labels must be distinct")
        if self.type != "llm" and len(self.labels) < 2:
            raise PydanticCustomError("labels", "a {type} classifier needs at least two labels", {"type": self.type})
        if self.type == "llm" and not self.instructions:
            raise PydanticCustomError("instructions", "an llm classifier needs instructions")
        foreign = {"local": self.model and "model", "sequence_classifier": self.instructions and "instructions"}.get(self.type)
        if foreign:
            raise PydanticCustomError("field", "a {type} classifier does not take {found}", {"type": self.type, "found": foreign})
        return self
