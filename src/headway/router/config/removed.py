"""Fields of earlier versions of the configuration. Each is refused with the name of the command that repairs it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from headway.router.config.diagnostics import Path

Step = str
"""A key, `*` for any key, `[]` for any item."""


class RemovedField(NamedTuple):
    """`where` ends in the key that is gone."""

    where: tuple[Step, ...]
    says: str


_CATALOG = ("global", "model_catalog")
_MODULES = (*_CATALOG, "modules")
_EXECUTION = "is one of the removed model execution fields"
_MODULE_PATHS: tuple[tuple[str, ...], ...] = (
    ("prompt_guard",),
    ("classifier", "domain"),
    ("classifier", "pii"),
    ("feedback_detector",),
    ("modality_detector", "classifier"),
    ("hallucination_mitigation", "fact_check"),
    ("hallucination_mitigation", "detector"),
    ("safety", "safety"),
    ("safety", "hazard"),
)

REMOVED: Sequence[RemovedField] = (
    RemovedField(
        (*_CATALOG, "deployments", "*", "profile"),
        "profile was removed; the engine arguments max_num_seqs, max_num_batched_tokens, batch_window_ms, dtype and enable_shared_context take its "
        "place. If your file has no profile, a command line older than the router wrote it: reinstall both from one channel",
    ),
    *(
        RemovedField((*_CATALOG, "deployments", "*", key), f"{key} {_EXECUTION}")
        for key in ("precision", "custom_ops_profile", "compilation_cache_dir", "backend", "use_cpu", "engine", "model_path")
    ),
    *(
        RemovedField((*_MODULES, *module, key), f"{key} {_EXECUTION}")
        for module in _MODULE_PATHS
        for key in ("variant", "model_type", "use_modernbert", "use_mmbert_32k")
    ),
    *(RemovedField((*_CATALOG, key), f"{key} {_EXECUTION}") for key in ("candle", "ort", "openvino")),
    *(RemovedField(("global", key), f"{key} {_EXECUTION}") for key in ("candle", "ort", "openvino")),
    *(RemovedField((key,), f"{key} {_EXECUTION}") for key in ("candle", "ort", "openvino")),
    *(
        RemovedField((*_MODULES, "hallucination_mitigation", "detector", key), f"{key} was removed with the natural language inference checks")
        for key in ("enable_nli_filtering", "nli_entailment_threshold", "endpoint")
    ),
    *(
        RemovedField((*_MODULES, "hallucination_mitigation", key), f"{key} was removed with the natural language inference checks")
        for key in ("explainer", "nli_model")
    ),
    *(
        RemovedField((*_CATALOG, "embeddings", "semantic", key), f"{key} was removed: embeddings come from a deployment")
        for key in ("gemma_model_path", "bert_model_path")
    ),
    RemovedField((*_CATALOG, "system", "hallucination_explainer"), "hallucination_explainer was removed with the natural language inference checks"),
    RemovedField(("global", "stores", "response_cache", "polarity_guard"), "polarity_guard was removed: the guard against negations is always on"),
    RemovedField(("global", "router", "auto_model_name"), "auto_model_name was removed: write an entrypoint with recipe default"),
    RemovedField(("global", "router", "auto_model_names"), "auto_model_names was removed: write an entrypoint with recipe default"),
    RemovedField(("global", "router", "include_config_models_in_list"), "include_config_models_in_list is called list_backend_models now"),
    RemovedField(("providers", "defaults", "default_model"), "default_model is called model now"),
    RemovedField(("providers", "defaults", "default_reasoning_effort"), "default_reasoning_effort is called reasoning_effort now"),
    RemovedField(("providers", "defaults", "reasoning_families"), "reasoning_families was removed: describe reasoning in each of providers.models"),
    RemovedField(("providers", "models", "[]", "reasoning_family"), "reasoning_family is written reasoning: {family: ...} now"),
    RemovedField(("providers", "models", "[]", "backend_refs", "[]", "type"), "type is called provider now"),
    *(
        RemovedField((*routing, "signals", kind, "[]", "use_nli"), "use_nli was removed with the natural language inference checks")
        for routing in (("routing",), ("recipes", "[]", "routing"))
        for kind in ("hallucination", "fact_check")
    ),
    *(
        RemovedField((*routing, "decisions", "[]", "plugins", "[]", "configuration", "use_nli"), "use_nli was removed with the natural language inference checks")
        for routing in (("routing",), ("recipes", "[]", "routing"))
    ),
    *(
        RemovedField((key,), f"{key} belongs to the layout of versions 0.1 to 0.2")
        for key in (
            "vllm_endpoints",
            "model_config",
            "categories",
            "default_model",
            "default_reasoning_effort",
            "reasoning_families",
            "bert_model",
            "classifier",
            "prompt_guard",
            "semantic_cache",
            "tools",
            "embedding_models",
            "keyword_rules",
            "embedding_rules",
            "context_rules",
            "fact_check_rules",
            "decisions",
            "signals",
            "auto_model_name",
            "include_config_models_in_list",
            "clear_route_cache",
            "strategy",
            "api",
            "observability",
            "response_api",
            "router_replay",
            "hallucination_mitigation",
            "feedback_detector",
            "plugins",
        )
    ),
)


def removed(path: Path) -> str | None:
    """What to say about the key at `path`, or None when no version had it."""
    for field in REMOVED:
        if matches(field.where, path):
            return field.says
    return None


def matches(pattern: Sequence[Step], path: Path) -> bool:
    return len(pattern) == len(path) and all(map(_fits, pattern, path))


def _fits(step: Step, part: str | int) -> bool:
    return isinstance(part, int) if step == "[]" else step in ("*", part)
