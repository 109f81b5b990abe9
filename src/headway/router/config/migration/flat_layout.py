"""Layouts of 0.1 and 0.2: everything at the top level."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import Any, Final

from ruamel.yaml.comments import CommentedMap, CommentedSeq

from headway.router.config.diagnostics import Path
from headway.router.config.migration.tree import Mapping, Tree, items, mapping_of, texts

_ROUTING: Final = ("signals", "decisions", "strategy")

_SIGNALS: Final = {
    "keyword_rules": "keywords",
    "embedding_rules": "embeddings",
    "categories": "domains",
    "fact_check_rules": "fact_check",
    "user_feedback_rules": "user_feedbacks",
    "reask_rules": "reasks",
    "preference_rules": "preferences",
    "language_rules": "language",
    "context_rules": "context",
    "structure_rules": "structure",
    "complexity_rules": "complexity",
    "modality_rules": "modality",
    "latency_rules": "latency",
    "role_bindings": "role_bindings",
    "jailbreak": "jailbreak",
    "hallucination": "hallucination",
    "pii": "pii",
    "kb": "kb",
}
"""Lists of rules at the top level -> where they are under routing.signals."""

_DEFAULTS: Final = ("default_model", "default_reasoning_effort", "reasoning_families")
_ENDPOINT_KEYS: Final = ("protocol", "weight", "type", "provider", "api_key", "api_key_env")
_PROFILE_KEYS: Final = ("base_url", "type", "auth_header", "auth_prefix", "extra_headers", "api_version", "chat_path")
_MODEL_KEYS: Final = {
    "model_id": "provider_model_id",
    "pricing": "pricing",
    "api_format": "api_format",
    "external_model_ids": "external_model_ids",
    "reasoning_family": "reasoning_family",
    "reliability": "reliability",
}
CARD_KEYS: Final = ("param_size", "context_window_size", "description", "capabilities", "loras", "modality", "tags", "quality_score")


def move_routing(tree: Tree) -> None:
    """Signals and decisions go under `routing`, defaults of models under `providers`."""
    for key in _ROUTING:
        tree.move(tree.root, key, (), ("routing", key))
    for key, collection in _SIGNALS.items():
        if isinstance(tree.root.get(key), list):
            tree.move(tree.root, key, (), ("routing", "signals", collection))
    for key in _DEFAULTS:
        tree.move(tree.root, key, (), ("providers", "defaults", key))
    routing = tree.mapping("routing")
    if routing is not None:
        tree.rename(routing, "models", "modelCards", ("routing",))


def move_models(tree: Tree) -> None:
    """`model_config`, `vllm_endpoints` and `provider_profiles` become provider models with their backends, and model cards."""
    described = tree.mapping("model_config")
    endpoints = {str(each.get("name")): each for each in items(tree.root.get("vllm_endpoints"))}
    profiles = tree.mapping("provider_profiles") or {}
    for name, given in (described or {}).items():
        if not isinstance(given, MutableMapping):
            continue
        model = named(_list(tree, "providers", "models"), str(name))
        card = CommentedMap((key, given[key]) for key in CARD_KEYS if given.get(key) not in (None, "", []))
        if card:
            named(_list(tree, "routing", "modelCards"), str(name)).update(card)
        for old, new in _MODEL_KEYS.items():
            if given.get(old) not in (None, "") and new not in model:
                model[new] = given[old]
        refs = [_backend(endpoints[each], profiles, given) for each in texts(given.get("preferred_endpoints")) if each in endpoints]
        if refs and "backend_refs" not in model:
            model["backend_refs"] = CommentedSeq(refs)
        for key in given:
            if key not in (*_MODEL_KEYS, *CARD_KEYS, "preferred_endpoints", "access_key"):
                tree.open(("model_config", str(name), str(key)), "has no place in v0.3; it was left out")
    for key, where in (("model_config", "providers.models"), ("vllm_endpoints", "providers.models[].backend_refs"), ("provider_profiles", "backend_refs")):
        if key in tree.root:
            del tree.root[key]
            tree.done(key, f"moved to {where}")


def _backend(endpoint: Mapping, profiles: Any, model: Mapping) -> CommentedMap:
    found = CommentedMap(name=str(endpoint.get("name")))
    profile = mapping_of(profiles, endpoint.get("provider_profile"))
    if profile is not None:
        found.update({("provider" if key == "type" else key): profile[key] for key in _PROFILE_KEYS if profile.get(key) is not None})
    if endpoint.get("address") and "base_url" not in found:
        port = endpoint.get("port")
        found["endpoint"] = f"{endpoint['address']}:{port}" if port else str(endpoint["address"])
    found.update({key: endpoint[key] for key in _ENDPOINT_KEYS if endpoint.get(key) is not None and key not in found})
    if model.get("access_key") and "api_key" not in found:
        found["api_key"] = model["access_key"]
    return found


def named(models: list[Any], name: str) -> Mapping:
    """The item of that name, added when it is not there."""
    for each in items(models):
        if each.get("name") == name:
            return each
    added: Mapping = CommentedMap(name=name)
    models.append(added)
    return added


def _list(tree: Tree, *path: str) -> list[Any]:
    above = tree.made(*path[:-1])
    if not isinstance(above.get(path[-1]), list):
        above[path[-1]] = CommentedSeq()
    found: list[Any] = above[path[-1]]
    return found


_CLASSIFIER: Final = {"category_model": "domain", "pii_model": "pii", "mcp_category_model": "mcp", "preference_model": "preference"}
_HALLUCINATION: Final = {"fact_check_model": "fact_check", "hallucination_model": "detector", "nli_model": "explainer"}

_BLOCKS: Final[dict[str, tuple[str, ...]]] = {
    **{key: ("router", key) for key in ("auto_model_name", "auto_model_names", "list_backend_models", "include_config_models_in_list")},
    **{key: ("router", key) for key in ("clear_route_cache", "model_selection")},
    "streamed_body_mode": ("router", "streamed_body", "enabled"),
    "max_streamed_body_bytes": ("router", "streamed_body", "max_bytes"),
    "streamed_body_timeout_sec": ("router", "streamed_body", "timeout_sec"),
    **{key: ("services", key) for key in ("response_api", "router_replay", "api", "observability", "authz", "ratelimit", "management_api")},
    "semantic_cache": ("stores", "response_cache"),
    **{key: ("stores", key) for key in ("response_cache", "memory", "vector_store")},
    **{key: ("integrations", key) for key in ("tools", "looper")},
    "system_models": ("model_catalog", "system"),
    "external_models": ("model_catalog", "external"),
    "embedding_models": ("model_catalog", "embeddings", "semantic"),
    **{key: ("model_catalog", "modules", key) for key in ("prompt_guard", "feedback_detector", "modality_detector", "prompt_compression")},
    **{key: ("model_catalog", "modules", key) for key in ("classifier", "hallucination_mitigation")},
}
"""Blocks of the top level, or of `global` or `global.modules` -> their place under `global`."""


def move_blocks(tree: Tree) -> None:
    """Services, stores and modules go to their places under `global`."""
    models = tree.mapping("global", "models")
    for key in list(models or ()):
        tree.move(models, key, ("global", "models"), ("global", "model_catalog", key))
    _leave(tree, models, "models")
    runtime = tree.mapping("global", "runtime")
    for key in list(runtime or ()):
        target = ("global", *_BLOCKS.get(key, (key,)))
        tree.move(runtime, key, ("global", "runtime"), target)
    _leave(tree, runtime, "runtime")
    places: list[tuple[Path, Callable[[], Mapping | None]]] = [
        ((), lambda: tree.root),
        (("global",), lambda: tree.mapping("global")),
        (("global", "modules"), lambda: tree.mapping("global", "modules")),
    ]
    for path, place in places:
        for key, target in _BLOCKS.items():
            tree.move(place(), key, path, ("global", *target))
        _bert(tree, place(), path)
    _leave(tree, tree.mapping("global", "modules"), "modules")
    stores = tree.mapping("global", "stores")
    tree.rename(stores, "semantic_cache", "response_cache", ("global", "stores"))
    modules: Path = ("global", "model_catalog", "modules")
    for block, names in (("classifier", _CLASSIFIER), ("hallucination_mitigation", _HALLUCINATION)):
        for old, new in names.items():
            tree.rename(tree.mapping(*map(str, modules), block), old, new, (*modules, block))


def _bert(tree: Tree, place: Mapping | None, path: Path) -> None:
    """The encoder of 0.1; its place in 0.2, from where it goes on."""
    encoder = mapping_of(place, "bert_model")
    if encoder is None:
        return
    semantic = tree.made("global", "model_catalog", "embeddings", "semantic")
    if encoder.get("threshold") is not None:
        tree.made("global", "model_catalog", "embeddings", "semantic", "embedding_config").setdefault("min_score_threshold", encoder["threshold"])
    for key, name in (("model_id", "bert_model_path"), ("use_cpu", "use_cpu")):
        if encoder.get(key) is not None:
            semantic.setdefault(name, encoder[key])
    tree.drop(place, "bert_model", path, "embeddings come from the deployment that bindings.embedding names; its threshold is min_score_threshold")


def _leave(tree: Tree, block: Mapping | None, name: str) -> None:
    if block is not None and not block:
        del tree.root["global"][name]
