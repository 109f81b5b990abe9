"""What can be wrong with a configuration, each as a change of a valid one."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

Data = dict[str, Any]


def _decisions(data: Data) -> list[Data]:
    return data["routing"]["decisions"]


def _leaf(node: Data) -> Data:
    return _leaf(node["conditions"][0]) if "conditions" in node else node


def _set(*path: Any, to: Any) -> Callable[[random.Random, Data], Any]:
    """Put a value where the path leads, making mappings on the way."""

    def change(_: random.Random, data: Data) -> Any:
        place: Any = data
        for key in path[:-1]:
            place = place.setdefault(key, {}) if isinstance(place, dict) else place[key]
        place[path[-1]] = to

    return change


def _rule(node: Any) -> Callable[[random.Random, Data], Any]:
    def change(rng: random.Random, data: Data) -> Any:
        rng.choice(_decisions(data))["rules"] = node

    return change


def _deployment(**settings: Any) -> Callable[[random.Random, Data], Any]:
    return _set("global", "model_catalog", "deployments", "wrong", to=settings)


def _plugin(type_: str, **settings: Any) -> Callable[[random.Random, Data], Any]:
    return _set("routing", "decisions", 0, "plugins", to=[{"type": type_, "configuration": settings}])


def _algorithm_is(**settings: Any) -> Callable[[random.Random, Data], Any]:
    return _set("routing", "decisions", 0, "algorithm", to=settings)


def _signal(collection: str, *rules: Any) -> Callable[[random.Random, Data], Any]:
    return _set("routing", "signals", collection, to=list(rules))


def _drop_name(_: random.Random, data: Data) -> Any:
    del _decisions(data)[0]["name"]


def _undeclared_signal(rng: random.Random, data: Data) -> Any:
    _leaf(rng.choice(_decisions(data))["rules"])["name"] = "nowhere"


def _repeat_signal(_: random.Random, data: Data) -> Any:
    rules = next(iter(data["routing"]["signals"].values()))
    rules.append(dict(rules[0]))


def _two_defaults(_: random.Random, data: Data) -> Any:
    data["recipes"] = [{"name": "default", "routing": {"decisions": []}}]


DEFECTS: dict[str, Callable[[random.Random, Data], Any]] = {
    "version of another time": _set("version", to="v0.2"),
    "unknown key at the top": _set("treshold", to=1),
    "unknown key in a listener": _set("listeners", 0, "adress", to="x"),
    "unknown key in a signal": _set("routing", "signals", "keywords", to=[{"name": "w", "operator": "OR", "keywords": ["a"], "colour": 1}]),
    "text for a number": _set("listeners", 0, "port", to="http"),
    "decision without a name": _drop_name,
    "undeclared signal": _undeclared_signal,
    "rule: unknown operator": _rule({"operator": "XOR", "conditions": [{"type": "keyword", "name": "words"}]}),
    "rule: NOT with two": _rule({"operator": "NOT", "conditions": [{"type": "keyword", "name": "words"}] * 2}),
    "rule: leaf and children": _rule(
        {"operator": "AND", "conditions": [{"type": "keyword", "name": "words", "conditions": [{"type": "keyword", "name": "words"}]}]}
    ),
    "rule: name without type": _rule({"operator": "AND", "conditions": [{"name": "words"}]}),
    "rule: type without name": _rule({"operator": "AND", "conditions": [{"type": "keyword"}]}),
    "rule: empty": _rule({}),
    "rule: nested without conditions": _rule({"operator": "AND", "conditions": [{"operator": "AND", "conditions": []}]}),
    "rule: unknown type": _rule({"operator": "AND", "conditions": [{"type": "bogus", "name": "words"}]}),
    "rule: on_unknown inside": _rule({"operator": "AND", "conditions": [{"type": "keyword", "name": "words", "on_unknown": "match"}]}),
    "rule: bare complexity": _rule({"operator": "AND", "conditions": [{"type": "complexity", "name": "hardness"}]}),
    "undeclared model": _set("routing", "decisions", 0, "modelRefs", to=[{"model": "nowhere"}]),
    "undeclared LoRA": _set("routing", "decisions", 0, "modelRefs", to=[{"model": "model-0", "lora_name": "nowhere"}]),
    "undeclared default model": _set("providers", "defaults", "model", to="nowhere"),
    "model without a backend": _set("providers", "models", 0, "backend_refs", to=[]),
    "unknown provider": _set("providers", "models", 0, "backend_refs", to=[{"endpoint": "h:1", "provider": "nobody"}]),
    "unknown reasoning family": _set("providers", "models", 0, "reasoning", to={"family": "nobody"}),
    "reasoning half written": _set("providers", "models", 0, "reasoning", to={"type": "reasoning_effort"}),
    "negative price": _set("providers", "models", 0, "pricing", to={"prompt_per_1m": -1}),
    "odd currency": _set("providers", "models", 0, "pricing", to={"currency": "dollars"}),
    "too many retries": _set("providers", "models", 0, "reliability", to={"retry_count": 9}),
    "no duration": _set("providers", "models", 0, "reliability", to={"connect_timeout": "soon"}),
    "unknown balancing": _set("providers", "models", 0, "reliability", to={"lb_policy": "sticky"}),
    "repeated model": lambda _, data: data["providers"]["models"].append(dict(data["providers"]["models"][0])),
    "repeated card": lambda _, data: data["routing"]["modelCards"].append(dict(data["routing"]["modelCards"][0])),
    "repeated signal": _repeat_signal,
    "card of nobody": lambda _, data: data["routing"]["modelCards"].append({"name": "nobody", "description": "x"}),
    "context band upside down": _signal("context", {"name": "c", "min_tokens": "64K", "max_tokens": "1K"}),
    "context without a number": _signal("context", {"name": "c", "min_tokens": "many"}),
    "context without a band": _signal("context", {"name": "c"}),
    "empty predicate": _signal(
        "structure", {"name": "s", "feature": {"type": "count", "source": {"type": "regex", "pattern": "a"}}, "predicate": {}}
    ),
    "predicate that nothing meets": _signal(
        "conversation", {"name": "s", "feature": {"type": "count", "source": {"type": "message"}}, "predicate": {"gt": 5, "lt": 2}}
    ),
    "metadata with two comparisons": _signal("metadata", {"name": "m", "key": "k", "predicate": {"equals": "a", "exists": True}}),
    "modality of nobody": _signal("input_modality", {"name": "m", "modality": "smell"}),
    "embedding without candidates": _signal("embeddings", {"name": "e", "threshold": 0.5}),
    "question: one choice": _signal("decision", {"name": "q", "question": {"type": "choice", "instructions": "?", "choices": [{"key": "a"}]}}),
    "question: blank": _signal("decision", {"name": "q", "question": {"type": "noul", "instructions": "  "}}),
    "question: score without predicate": _signal("decision", {"name": "q", "question": {"type": "score", "instructions": "?", "levels": ["a", "b"]}}),
    "question: foreign field": _signal("decision", {"name": "q", "question": {"type": "noul", "instructions": "?", "levels": ["a", "b"]}}),
    "question: undeclared deployment": _signal("decision", {"name": "q", "deployment": "nowhere", "question": {"type": "noul", "instructions": "?"}}),
    "question: timeout": _signal("decision", {"name": "q", "timeout_ms": 99999999, "question": {"type": "noul", "instructions": "?"}}),
    "classifier: one label": _signal("classifiers", {"name": "c", "type": "local", "labels": ["a"]}),
    "classifier: llm without instructions": _signal("classifiers", {"name": "c", "type": "llm", "labels": ["a", "b"], "model": "x"}),
    "safety without a threshold": _signal("safety", {"name": "s"}),
    "kb target": _signal("kb", {"name": "k", "kb": "b", "target": {"kind": "shelf", "value": "v"}}),
    "algorithm: unknown": _algorithm_is(type="dice"),
    "algorithm: foreign block": _algorithm_is(type="static", multi_factor={"weights": {"cost": 1}}),
    "algorithm: no percentile": _algorithm_is(type="latency_aware", latency_aware={}),
    "algorithm: percentile": _algorithm_is(type="latency_aware", latency_aware={"ttft_percentile": 300}),
    "algorithm: hybrid of nothing": _algorithm_is(
        type="hybrid", hybrid={"experience_weight": 0, "router_dc_weight": 0, "automix_weight": 0, "cost_weight": 0}
    ),
    "algorithm: negative weight": _algorithm_is(type="multi_factor", multi_factor={"weights": {"cost": -1}}),
    "algorithm: lexicographic without priorities": _algorithm_is(type="multi_factor", multi_factor={"objective": {"strategy": "lexicographic"}}),
    "algorithm: chooser without instructions": _algorithm_is(type="decision", decision={}),
    "algorithm: candidates": _algorithm_is(type="static", minimum_candidates=99),
    "algorithm: retired": _algorithm_is(type="elo"),
    "algorithm: not built": _algorithm_is(type="fusion", fusion={"model": "model-0"}),
    "plugin: unknown": _plugin("teleport", enabled=True),
    "plugin: threshold": _plugin("response_cache", enabled=True, similarity_threshold=2),
    "plugin: no message": _plugin("fast_response"),
    "plugin: mode": _plugin("system_prompt", mode="append"),
    "plugin: tools filtered by nothing": _plugin("tools", enabled=True, mode="filtered"),
    "plugin: shadow without a model": _plugin("shadow_dispatch", enabled=True),
    "plugin: not built": _plugin("memory", enabled=True),
    "deployment: a default taken away": _set("global", "model_catalog", "deployments", to={"hazard": None}),
    "deployment: no artifact": _deployment(provider="model_runtime"),
    "deployment: relative artifact": _deployment(provider="model_runtime", artifact="models/x/y"),
    "deployment: short revision": _deployment(provider="model_runtime", artifact="a/b", revision="abc"),
    "deployment: revision of a path": _deployment(provider="model_runtime", artifact="/a", revision="0" * 40),
    "deployment: odd device": _deployment(provider="model_runtime", artifact="a/b", device="GPU 0"),
    "deployment: device of an endpoint": _deployment(provider="model_runtime", endpoint="http://h:1", device="cpu"),
    "deployment: endpoint": _deployment(provider="model_runtime", endpoint="h:1"),
    "deployment: replicas beside a device": _deployment(provider="model_runtime", artifact="/a", device="cpu", replicas=[{"device": "cpu"}]),
    "deployment: same replica twice": _deployment(provider="model_runtime", replicas=[{"endpoint": "http://h:1"}, {"endpoint": "http://h:1/"}]),
    "deployment: overflow": _deployment(provider="model_runtime", artifact="/a", input={"overflow": "spill"}),
    "deployment: few tokens": _deployment(provider="model_runtime", artifact="/a", max_num_batched_tokens=1),
    "deployment: removed provider": _deployment(provider="candle", artifact="models/x"),
    "deployment: removed precision": _deployment(provider="model_runtime", artifact="/a", precision="fp16"),
    "deployment: removed profile": _deployment(provider="model_runtime", artifact="/a", profile="exact"),
    "deployment: unknown service": _deployment(provider="http", external_model="nowhere"),
    "binding: unknown consumer": _set("global", "model_catalog", "bindings", "dishwasher", to={"deployment": "primary", "contract": "label_distribution.v1"}),
    "binding: wrong contract": _set("global", "model_catalog", "bindings", "prompt_guard", to={"deployment": "primary", "contract": "token_spans.v1"}),
    "binding: undeclared deployment": _set(
        "global", "model_catalog", "bindings", "prompt_guard", to={"deployment": "nowhere", "contract": "label_distribution.v1"}
    ),
    "decision model of nobody": _set("global", "model_catalog", "system", "decision_model", to={"deployment": "nowhere"}),
    "listener: grants nobody": _set("listeners", 0, "systemone", to={"models": ["nobody"]}),
    "listener: grants nothing": _set("listeners", 0, "systemone", to={"models": []}),
    "listener: half of TLS": _set("listeners", 0, "tls", to={"cert_file": "c.pem"}),
    "entrypoint: no recipe": _set("entrypoints", to=[{"model_names": ["x"], "recipe": "nowhere"}]),
    "entrypoint: no names": _set("entrypoints", to=[{"model_names": [], "recipe": "default"}]),
    "entrypoint: a model's name": _set("entrypoints", to=[{"model_names": ["model-0"], "recipe": "default"}]),
    "entrypoint: twice": _set("entrypoints", to=[{"model_names": ["x"], "recipe": "default"}] * 2),
    "recipe: default again": _two_defaults,
    "recipe: reserved": _set("recipes", to=[{"name": "@global", "routing": {}}]),
    "recipe: repeated": _set("recipes", to=[{"name": "r", "routing": {}}, {"name": "r", "routing": {}}]),
    "projection: circle": _set(
        "routing",
        "projections",
        to={"scores": [{"name": "s", "method": "weighted_sum", "inputs": [{"type": "projection", "name": "s", "weight": 1, "value_source": "raw"}]}]},
    ),
    "projection: undeclared score": _set(
        "routing",
        "projections",
        to={"scores": [{"name": "s", "method": "weighted_sum", "inputs": [{"type": "projection", "name": "t", "weight": 1, "value_source": "raw"}]}]},
    ),
    "projection: undeclared source": _set(
        "routing", "projections", to={"mappings": [{"name": "m", "source": "nowhere", "method": "threshold_bands", "outputs": [{"name": "o", "lt": 1}]}]}
    ),
    "old: default_model": _set("providers", "defaults", "default_model", to="model-0"),
    "old: automatic names": _set("global", "router", to={"auto_model_name": "x"}),
    "old: model section": _set("vllm_endpoints", to=[{"name": "e", "address": "h", "port": 1}]),
    "old: selectors": _set("global", "model_catalog", "modules", to={"prompt_guard": {"use_mmbert_32k": True}}),
    "old: polarity_guard": _set("global", "stores", to={"response_cache": {"polarity_guard": True}}),
    "preview without time": _set("global", "services", to={"api": {"routing_preview": {"request_timeout_seconds": 0}}}),
    "strategy": _set("routing", "strategy", to="luck"),
    "fallback shorter than a try": _set("routing", "fallback", to={"enabled": True, "total_timeout": "1s", "per_attempt_timeout": "10s"}),
    "annotations too many": _set("routing", "decisions", 0, "annotations", to={str(number): 1 for number in range(40)}),
    "hand-off without a guard": _set("routing", "decisions", 0, "action", to={"type": "route", "destination": "elsewhere"}),
}
