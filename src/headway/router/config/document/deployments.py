"""Deployments of a configuration document."""

from __future__ import annotations

from pydantic import Field

from headway.router.config.document.node import Node


class ModelInputBudget(Node):
    max_tokens: int | None = None
    overflow: str | None = None


class ModelReplica(Node):
    device: str | None = None
    endpoint: str | None = None
    served_name: str | None = None


class ModelDeployment(Node):
    artifact: str | None = None
    revision: str | None = None
    external_model: str | None = None
    provider: str | None = None
    device: str | None = None
    input: ModelInputBudget | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    batch_window_ms: float | None = None
    dtype: str | None = None
    enable_shared_context: bool | None = None
    endpoint: str | None = None
    replicas: list[ModelReplica] | None = None
    served_name: str | None = None
    public_name: str | None = None


class PairScorerSelection(Node):
    layer: int | None = None
    dimension: int | None = None


class OperatingPointReference(Node):
    path: str
    sha256: str


class ModelBinding(Node):
    deployment: str | None = None
    contract: str | None = None
    adapter: str | None = None
    head: str | None = None
    mapping_path: str | None = None
    pair_scorer: PairScorerSelection | None = None
    operating_point: OperatingPointReference | None = None


class Admission(Node):
    max_concurrency: int | None = None
    max_queue: int | None = None
    queue_timeout_ms: int | None = None
    on_overflow: str | None = None


class DecisionModelBinding(Node):
    deployment: str = Field(min_length=1)
