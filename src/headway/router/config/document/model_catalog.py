"""Model catalog of a configuration document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from headway.router.config.document.deployments import Admission, DecisionModelBinding, ModelBinding, ModelDeployment
from headway.router.config.document.model_signals import Cosine, PrototypeScoring, Share, Text
from headway.router.config.document.modules import ModelModules
from headway.router.config.document.node import Node


class EmbeddingEndpoint(Node):
    """A service that speaks OpenAI's `/embeddings`, below `base_url`. `api_key_env` names the variable with its key."""

    base_url: Text
    model: Text
    api_key_env: Text | None = None
    timeout_seconds: int = Field(default=30, ge=1)
    max_retries: int = Field(default=2, ge=0, le=10)
    max_response_bytes: int = Field(default=16 * 1024 * 1024, ge=1)
    dimensions: int | None = Field(default=None, ge=1)


class EmbeddingConfig(Node):
    """How rules of the embedding signal are weighed. `top_k` rules match at most, the best first (0: all). `enable_soft_matching`: when no rule
    reaches its threshold, the best one matches if it reaches `min_score_threshold`."""

    absent: ClassVar[Mapping[str, str]] = {
        "model_type": "vectors are made by the deployment that bindings.embedding names",
        "backend": "vectors are made by the deployment that bindings.embedding names",
        "target_dimension": "vectors have the model's own size",
        "target_layer": "vectors are those of the model's last layer",
        "full_context": "the deployment's `input` says how long inputs are read",
        "preload_embeddings": "vectors of candidates are made with the first request and kept",
    }

    enable_soft_matching: bool = True
    top_k: int = Field(default=1, ge=0)
    min_score_threshold: Share = 0.5
    prototype_scoring: PrototypeScoring | None = None


class EmbeddingModels(Node):
    absent: ClassVar[Mapping[str, str]] = {
        "qwen3_model_path": "declare a deployment with that artifact and bind `embedding` to it",
        "mmbert_model_path": "declare a deployment with that artifact and bind `embedding` to it",
        "multimodal_model_path": "declare a deployment with that artifact and bind `embedding` to it",
        "use_cpu": "set `device` on the deployment",
    }

    embedding_config: EmbeddingConfig | None = None
    endpoint: EmbeddingEndpoint | None = None


class EmbeddingCatalog(Node):
    semantic: EmbeddingModels | None = None


class KnowledgeBaseSource(Node):
    """`manifest` is a JSON file below the folder `path`: `{"labels": {name: {"description", "exemplars": [text]}}}`."""

    path: Text
    manifest: Text = "labels.json"


class KnowledgeBaseMetric(Node):
    """The best similarity to a label of `positive_group` less that to one of `negative_group`."""

    name: Text
    type: Literal["group_margin"]
    positive_group: Text
    negative_group: Text


class KnowledgeBase(Node):
    """`threshold` holds for labels that `label_thresholds` does not name."""

    name: Text
    source: KnowledgeBaseSource
    threshold: Cosine
    label_thresholds: dict[str, Cosine] = {}
    groups: dict[str, list[str]] = {}
    metrics: list[KnowledgeBaseMetric] = []
    prototype_scoring: PrototypeScoring | None = None

    @model_validator(mode="after")
    def _groups_exist(self) -> KnowledgeBase:
        for metric in self.metrics:
            for group in (metric.positive_group, metric.negative_group):
                if group not in self.groups:
                    raise PydanticCustomError("group", "metric {metric} names group {group}, which is not there", {"metric": metric.name, "group": group})
        return self


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
    """`deployments` are added to the default ones, an entry of the same name replaces the whole of it. `deployments: null` clears the default
    ones, a null entry removes one. `signal_timeout_ms` is the deadline of a request's model signals."""

    absent: ClassVar[Mapping[str, str]] = {
        "external": "services of other kinds are not asked; attach a model runtime by its endpoint, or let a decision model judge",
    }
    nullable: ClassVar[frozenset[str]] = frozenset({"deployments"})

    bindings: dict[str, ModelBinding] | None = None
    deployments: dict[str, ModelDeployment | None] | None = None
    embeddings: EmbeddingCatalog | None = None
    system: SystemModels | None = None
    kbs: list[KnowledgeBase] | None = None
    modules: ModelModules | None = None
    admission: dict[str, Admission] | None = None
    signal_timeout_ms: int | None = Field(default=None, gt=0)
