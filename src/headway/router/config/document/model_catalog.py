"""Model catalog of a configuration document."""

from __future__ import annotations

from headway.router.config.document.deployments import Admission, DecisionModelBinding, ModelBinding, ModelDeployment
from headway.router.config.document.model_signals import PrototypeScoring
from headway.router.config.document.modules import ModelModules
from headway.router.config.document.node import Node


class EmbeddingEndpoint(Node):
    base_url: str | None = None
    model: str | None = None
    api_key_env: str | None = None
    timeout_seconds: int | None = None
    max_retries: int | None = None
    max_response_bytes: int | None = None
    dimensions: int | None = None


class EmbeddingConfig(Node):
    full_context: bool | None = None
    backend: str | None = None
    model_type: str | None = None
    preload_embeddings: bool | None = None
    target_dimension: int | None = None
    target_layer: int | None = None
    enable_soft_matching: bool | None = None
    top_k: int | None = None
    min_score_threshold: float | None = None
    prototype_scoring: PrototypeScoring | None = None


class EmbeddingModels(Node):
    qwen3_model_path: str | None = None
    mmbert_model_path: str | None = None
    multimodal_model_path: str | None = None
    use_cpu: bool | None = None
    embedding_config: EmbeddingConfig | None = None
    endpoint: EmbeddingEndpoint | None = None


class EmbeddingCatalog(Node):
    semantic: EmbeddingModels | None = None


class ClassifierVLLMEndpoint(Node):
    address: str | None = None
    port: int | None = None
    protocol: str | None = None
    name: str | None = None
    use_chat_template: bool | None = None
    prompt_template: str | None = None


class ExternalModelReasoning(Node):
    family: str
    use_reasoning: bool
    reasoning_effort: str | None = None


class ExternalModel(Node):
    name: str | None = None
    llm_provider: str | None = None
    model_role: str | None = None
    llm_endpoint: ClassifierVLLMEndpoint | None = None
    llm_model_name: str | None = None
    llm_timeout_seconds: float | None = None
    parser_type: str | None = None
    threshold: float | None = None
    access_key: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    reasoning: ExternalModelReasoning | None = None
    max_request_bytes: int | None = None
    max_response_bytes: int | None = None


class KnowledgeBaseSource(Node):
    path: str | None = None
    manifest: str | None = None


class KnowledgeBaseMetric(Node):
    name: str | None = None
    type: str | None = None
    positive_group: str | None = None
    negative_group: str | None = None


class KnowledgeBase(Node):
    name: str | None = None
    source: KnowledgeBaseSource | None = None
    threshold: float | None = None
    label_thresholds: dict[str, float] | None = None
    groups: dict[str, list[str]] | None = None
    metrics: list[KnowledgeBaseMetric] | None = None
    prototype_scoring: PrototypeScoring | None = None


class SystemModels(Node):
    decision_model: DecisionModelBinding | None = None
    safety: str | None = None
    hazard: str | None = None
    prompt_guard: str | None = None
    domain_classifier: str | None = None
    pii_classifier: str | None = None
    fact_check_classifier: str | None = None
    hallucination_detector: str | None = None
    feedback_detector: str | None = None


class ModelCatalog(Node):
    bindings: dict[str, ModelBinding] | None = None
    deployments: dict[str, ModelDeployment] | None = None
    embeddings: EmbeddingCatalog | None = None
    system: SystemModels | None = None
    external: list[ExternalModel] | None = None
    kbs: list[KnowledgeBase] | None = None
    modules: ModelModules | None = None
    admission: dict[str, Admission] | None = None
    signal_timeout_ms: int | None = None
