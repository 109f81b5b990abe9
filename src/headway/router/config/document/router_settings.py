"""Router settings of a configuration document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from headway.router.config.document.algorithms import HybridSelection, RouterDCSelection
from headway.router.config.document.decisions import FallbackPolicy
from headway.router.config.document.node import Node


class StreamedBody(Node):
    enabled: bool | None = None
    max_bytes: int | None = None
    timeout_sec: int | None = None


class SkipProcessing(Node):
    enabled: bool | None = None


class MLKNN(Node):
    k: int | None = None
    pretrained_path: str | None = None


class MLKMeans(Node):
    num_clusters: int | None = None
    efficiency_weight: float | None = None
    pretrained_path: str | None = None


class MLSVM(Node):
    kernel: str | None = None
    gamma: float | None = None
    pretrained_path: str | None = None


class MLMLP(Node):
    device: str | None = None
    pretrained_path: str | None = None


class MLSelection(Node):
    models_path: str | None = None
    model_type: str | None = None
    embedding_dim: int | None = None
    knn: MLKNN | None = None
    kmeans: MLKMeans | None = None
    svm: MLSVM | None = None
    mlp: MLMLP | None = None


class ModelSelection(Node):
    absent: ClassVar[Mapping[str, str]] = {
        "automix": "automix is not built; use confidence",
    }

    method: str | None = None
    enabled: bool | None = None
    router_dc: RouterDCSelection | None = None
    hybrid: HybridSelection | None = None
    ml: MLSelection | None = None


class RouterSettings(Node):
    absent: ClassVar[Mapping[str, str]] = {
        "learning": "learning from outcomes is not built; use algorithm.multi_factor or the trained selectors (knn, kmeans, svm, mlp)",
    }

    enabled: bool | None = None
    config_source: Literal["file", "kubernetes"] | None = None
    strategy: str | None = None
    list_backend_models: bool | None = None
    clear_route_cache: bool | None = None
    streamed_body: StreamedBody | None = None
    skip_processing: SkipProcessing | None = None
    model_selection: ModelSelection | None = None
    fallback: FallbackPolicy | None = None
