"""Modules of a configuration document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from headway.router.config.document.model_signals import PrototypeScoring
from headway.router.config.document.node import Node


class SequenceHeadWindow(Node):
    size: int | None = None
    overlap: int | None = None


class SequenceHeadModel(Node):
    model_id: str | None = None
    model_ref: str | None = None
    use_cpu: bool | None = None
    max_sequence_length: int | None = None
    window: SequenceHeadWindow | None = None


class RemoteClassifierBackend(Node):
    protocol: str | None = None
    contract: str | None = None
    model: str | None = None
    deadline_ms: int | None = None


class PromptGuardModule(Node):
    max_sequence_length: int | None = None
    backend: RemoteClassifierBackend | None = None
    window: SequenceHeadWindow | None = None
    enabled: bool | None = None
    model_id: str | None = None
    threshold: float | None = None
    use_cpu: bool | None = None
    jailbreak_mapping_path: str | None = None
    positive_labels: list[str] | None = None
    on_error: str | None = None
    on_unscanned: str | None = None
    model_ref: str | None = None


class CategoryModule(Node):
    max_sequence_length: int | None = None
    enabled: bool | None = None
    model_id: str | None = None
    threshold: float | None = None
    use_cpu: bool | None = None
    backend: RemoteClassifierBackend | None = None
    category_mapping_path: str | None = None
    fallback_category: str | None = None
    model_ref: str | None = None


class PIIModule(Node):
    window: SequenceHeadWindow | None = None
    max_sequence_length: int | None = None
    enabled: bool | None = None
    model_id: str | None = None
    threshold: float | None = None
    use_cpu: bool | None = None
    pii_mapping_path: str | None = None
    backend: RemoteClassifierBackend | None = None
    on_error: str | None = None
    on_unscanned: str | None = None
    model_ref: str | None = None


class PreferenceModel(Node):
    use_contrastive: bool | None = None
    embedding_model: str | None = None
    prototype_scoring: PrototypeScoring | None = None


class ClassifierModule(Node):
    absent: ClassVar[Mapping[str, str]] = {
        "mcp": "classifiers behind MCP are not built; attach a model runtime by its endpoint",
    }

    domain: CategoryModule | None = None
    pii: PIIModule | None = None
    preference: PreferenceModel | None = None


class FactCheckModule(Node):
    max_sequence_length: int | None = None
    model_id: str | None = None
    threshold: float | None = None
    use_cpu: bool | None = None
    model_ref: str | None = None


class HallucinationDetector(Node):
    backend: str | None = None
    include_explanation: bool | None = None
    model_id: str | None = None
    threshold: float | None = None
    use_cpu: bool | None = None
    min_span_length: int | None = None
    min_span_confidence: float | None = None
    context_window_size: int | None = None
    model_ref: str | None = None


class HallucinationModule(Node):
    enabled: bool | None = None
    fact_check: FactCheckModule | None = None
    detector: HallucinationDetector | None = None


class FeedbackDetectorModule(Node):
    max_sequence_length: int | None = None
    enabled: bool | None = None
    model_id: str | None = None
    threshold: float | None = None
    use_cpu: bool | None = None
    feedback_mapping_path: str | None = None
    model_ref: str | None = None


class ModalityClassifier(Node):
    max_sequence_length: int | None = None
    model_path: str | None = None
    use_cpu: bool | None = None


class ModalityDetector(Node):
    enabled: bool | None = None
    method: str | None = None
    classifier: ModalityClassifier | None = None
    keywords: list[str] | None = None
    both_keywords: list[str] | None = None
    confidence_threshold: float | None = None
    lower_threshold_ratio: float | None = None


class ComplexityModel(Node):
    prototype_scoring: PrototypeScoring | None = None
    backend: RemoteClassifierBackend | None = None


class SafetyModels(Node):
    safety: SequenceHeadModel | None = None
    hazard: SequenceHeadModel | None = None


class PromptCompression(Node):
    enabled: bool | None = None
    profile: str | None = None
    max_tokens: int | None = None
    min_length: int | None = None
    skip_signals: list[str] | None = None
    textrank_weight: float | None = None
    position_weight: float | None = None
    tfidf_weight: float | None = None
    novelty_weight: float | None = None
    position_depth: float | None = None
    preserve_first_n: int | None = None
    preserve_last_n: int | None = None


class ModelModules(Node):
    safety: SafetyModels | None = None
    prompt_compression: PromptCompression | None = None
    prompt_guard: PromptGuardModule | None = None
    classifier: ClassifierModule | None = None
    complexity: ComplexityModel | None = None
    hallucination_mitigation: HallucinationModule | None = None
    feedback_detector: FeedbackDetectorModule | None = None
    modality_detector: ModalityDetector | None = None
