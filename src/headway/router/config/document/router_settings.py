"""Router settings of a configuration document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from headway.router.config.document.algorithms import ALGORITHM_TYPES, HybridSelection, RouterDCSelection
from headway.router.config.document.decisions import FallbackPolicy
from headway.router.config.document.learning import Learning
from headway.router.config.document.node import Node


class StreamedBody(Node):
    """Limits of request bodies; with `enabled: false` the usual ones hold."""

    enabled: bool | None = None
    max_bytes: int | None = None
    timeout_sec: int | None = None


class SkipProcessing(Node):
    enabled: bool | None = None


class DebugCallers(Node):
    """Who may ask for a trace of its request with `x-vsr-debug: true`: peers by network, and holders of named API keys."""

    peers: list[str] = ["127.0.0.0/8", "::1/128"]
    keys: list[str] = []


class HeaderSettings(Node):
    debug: DebugCallers = DebugCallers()


class MLKNN(Node):
    k: int | None = Field(default=None, ge=1)
    pretrained_path: str | None = None


class MLKMeans(Node):
    num_clusters: int | None = Field(default=None, ge=1)
    efficiency_weight: float | None = Field(default=None, ge=0, le=1)
    pretrained_path: str | None = None


class MLSVM(Node):
    kernel: Literal["linear", "rbf"] | None = None
    gamma: float | None = Field(default=None, gt=0)
    pretrained_path: str | None = None


class MLMLP(Node):
    device: Literal["cpu"] | None = None
    pretrained_path: str | None = None


class MLSelection(Node):
    """Where trained selectors lie: `models_path/<algorithm>`, as `vllm-sr optimize train` writes them, or each one's `pretrained_path`.

    The numbers of an algorithm were fixed when it was trained; they are read by `vllm-sr optimize train --config`.
    """

    absent: ClassVar[Mapping[str, str]] = {
        "model_type": "the algorithm is that of the decision, or model_selection.method",
        "embedding_dim": "vectors have the size of the model that bindings.embedding names",
    }

    models_path: str | None = None
    knn: MLKNN | None = None
    kmeans: MLKMeans | None = None
    svm: MLSVM | None = None
    mlp: MLMLP | None = None


class ModelSelection(Node):
    """`method` is the algorithm of decisions with several modelRefs that name none; `enabled: false` makes that static."""

    absent: ClassVar[Mapping[str, str]] = {
        "automix": "automix is not built; use confidence",
    }

    method: Literal[ALGORITHM_TYPES] | None = None  # type: ignore[valid-type]
    enabled: bool = True
    router_dc: RouterDCSelection | None = None
    hybrid: HybridSelection | None = None
    ml: MLSelection | None = None


class RouterSettings(Node):
    """`enabled: false` is Engine mode: native System One alone. `clear_route_cache` was for the proxy of earlier versions, which had such a cache."""

    enabled: bool | None = None
    config_source: Literal["file"] | None = None
    strategy: Literal["priority", "confidence"] | None = None
    list_backend_models: bool | None = None
    clear_route_cache: bool | None = None
    headers: HeaderSettings = HeaderSettings()
    streamed_body: StreamedBody | None = None
    skip_processing: SkipProcessing | None = None
    model_selection: ModelSelection | None = None
    fallback: FallbackPolicy | None = None
    learning: Learning | None = None
