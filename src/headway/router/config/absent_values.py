"""Values that vllm-sr has or had, and this router does not: refused with what to do, never as a typing error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from headway.router.config.diagnostics import Path
from headway.router.config.removed import matches


class AbsentValues(NamedTuple):
    """`values` of the key at `where`, each with its advice. `removed`: earlier versions had them, and `config migrate` knows what to do."""

    where: tuple[str, ...]
    values: Mapping[str, str]
    removed: bool = False


_ROUTINGS: tuple[tuple[str, ...], ...] = (("routing",), ("recipes", "[]", "routing"))
_CASCADE = "use confidence, a cascade"
_LEARNING = "learning from outcomes is not built; use multi_factor, or the trained knn, kmeans, svm and mlp"
_REPLAYS = "replays are kept in SQLite, in Redis or in memory"
_SESSIONS = "sessions keep their model with global.router.learning.protection, whatever the algorithm is"
_EXECUTION = "it is one of the removed model execution fields; models are served by provider model_runtime"
_NOT_BUILT_ALGORITHMS = {
    "automix": _CASCADE,
    "cascade": "cascades of typed answers are not built; grant the model itself: listeners[].systemone.models",
    "fusion": _CASCADE,
    "prompt": "use decision, where a decision model chooses",
    "ratings": _CASCADE,
    "remom": _CASCADE,
    "workflows": _CASCADE,
    "session_aware": _SESSIONS,
    **dict.fromkeys(("elo", "rl_driven", "gmtrouter", "bandit", "personalization", "thompson", "router_r1"), _LEARNING),
}

ABSENT_VALUES: Sequence[AbsentValues] = (
    AbsentValues(
        ("global", "model_catalog", "deployments", "*", "provider"), dict.fromkeys(("candle", "ort", "onnxruntime", "openvino"), _EXECUTION), True
    ),
    AbsentValues(
        ("global", "model_catalog", "deployments", "*", "provider"), {"http": "services of other kinds are not asked; attach a model runtime by its endpoint"}
    ),
    AbsentValues(("global", "router", "config_source"), {"kubernetes": "configurations are files; mount a ConfigMap as one"}),
    AbsentValues(("global", "router", "model_selection", "method"), _NOT_BUILT_ALGORITHMS),
    AbsentValues(("global", "services", "router_replay", "store_backend"), dict.fromkeys(("postgres", "milvus", "qdrant"), _REPLAYS)),
    AbsentValues(("global", "services", "startup_status", "store_backend"), {"redis": "the startup status is kept in a file"}),
    *(AbsentValues((*routing, "decisions", "[]", "algorithm", "type"), _NOT_BUILT_ALGORITHMS) for routing in _ROUTINGS),
    *(
        AbsentValues((*routing, "signals", "embeddings", "[]", "query_modality"), {"audio": "embeddings of audio are not built"})
        for routing in _ROUTINGS
    ),
    *(
        AbsentValues((*routing, "projections", "scores", "[]", "inputs", "[]", "type"), {"action": "ask a systemone choice instead"})
        for routing in _ROUTINGS
    ),
)

_ACTION = "the action signal is not built; ask a systemone choice instead"


def absent_value(path: Path, value: Any) -> tuple[str, bool] | None:
    """(advice, whether migrating helps) for a value that other versions have at `path`."""
    if not isinstance(value, str):
        return None
    if path[-1:] == ("type",) and "rules" in path and value == "action":
        return _ACTION, False
    for each in ABSENT_VALUES:
        if value in each.values and matches(each.where, path):
            return each.values[value], each.removed
    return None
