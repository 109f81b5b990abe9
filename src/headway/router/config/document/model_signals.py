"""Model signals of a configuration document."""

from __future__ import annotations

from headway.router.config.document.node import Node
from headway.router.config.document.rule_tree import RuleNode


class PrototypeScoring(Node):
    enabled: bool | None = None
    cluster_similarity_threshold: float | None = None
    max_prototypes: int | None = None
    best_weight: float | None = None
    top_m: int | None = None
    margin_threshold: float | None = None


class EmbeddingRule(Node):
    name: str | None = None
    threshold: float | None = None
    candidates: list[str] | None = None
    image_candidates: list[str] | None = None
    negative_candidates: list[str] | None = None
    negative_image_candidates: list[str] | None = None
    aggregation_method: str | None = None
    query_modality: str | None = None
    prototype_scoring: PrototypeScoring | None = None


class ModelScore(Node):
    model: str | None = None
    score: float | None = None
    use_reasoning: bool | None = None


class DomainRule(Node):
    name: str | None = None
    description: str | None = None
    mmlu_categories: list[str] | None = None
    model_scores: list[ModelScore] | None = None


class FactCheckRule(Node):
    name: str | None = None
    description: str | None = None


class UserFeedbackRule(Node):
    name: str | None = None
    description: str | None = None


class ReaskRule(Node):
    name: str | None = None
    description: str | None = None
    threshold: float | None = None
    lookback_turns: int | None = None


class PreferenceRule(Node):
    name: str | None = None
    description: str | None = None
    examples: list[str] | None = None
    threshold: float | None = None


class ComplexityCandidates(Node):
    candidates: list[str] | None = None
    image_candidates: list[str] | None = None


class ComplexityRule(Node):
    name: str | None = None
    prototype_scoring: PrototypeScoring | None = None
    threshold: float | None = None
    hard: ComplexityCandidates | None = None
    easy: ComplexityCandidates | None = None
    hard_above: float | None = None
    easy_below: float | None = None
    hard_below: float | None = None
    easy_above: float | None = None
    description: str | None = None
    composer: RuleNode | None = None


class ModalityRule(Node):
    name: str | None = None
    description: str | None = None


class JailbreakRule(Node):
    name: str | None = None
    method: str | None = None
    threshold: float | None = None
    include_history: bool | None = None
    description: str | None = None
    jailbreak_patterns: list[str] | None = None
    benign_patterns: list[str] | None = None
    direction: str | None = None


class SafetyHazardRule(Node):
    model: str | None = None
    labels: list[str] | None = None
    categories: list[str] | None = None
    threshold: float | None = None


class SafetyRule(Node):
    name: str | None = None
    description: str | None = None
    model: str | None = None
    labels: list[str] | None = None
    unsafe_labels: list[str] | None = None
    threshold: float | None = None
    hazard: SafetyHazardRule | None = None


class HallucinationRule(Node):
    name: str | None = None
    description: str | None = None


class PIIRule(Node):
    name: str | None = None
    threshold: float | None = None
    pii_types_allowed: list[str] | None = None
    include_history: bool | None = None
    source: str | None = None
    description: str | None = None


class KBSignalTarget(Node):
    kind: str | None = None
    value: str | None = None


class KBSignalRule(Node):
    name: str | None = None
    kb: str | None = None
    target: KBSignalTarget | None = None
    match: str | None = None


class ClassifierSignalRule(Node):
    name: str | None = None
    description: str | None = None
    type: str | None = None
    model: str | None = None
    model_path: str | None = None
    labels: list[str] | None = None
    instructions: str | None = None
    disable_rationale: bool | None = None
    use_cpu: bool | None = None
