"""Configurations made from a seed: valid ones over most of the document, and the same with one defect each."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import yaml

Data = dict[str, Any]


@dataclass(frozen=True)
class Generated:
    """`defect` is None for a configuration that was made to be valid."""

    text: str
    defect: str | None


def generated(number: int) -> Generated:
    """Each defect once, then valid ones; what surrounds a defect comes from the number too."""
    rng = random.Random(number)
    data = _valid(rng)
    defect = list(DEFECTS)[number] if number < len(DEFECTS) else None
    if defect is not None:
        DEFECTS[defect](rng, data)
    return Generated(yaml.safe_dump(data, sort_keys=False, allow_unicode=True), defect)


def _valid(rng: random.Random) -> Data:
    models = [f"model-{index}" for index in range(rng.randint(2, 5))]
    signals, leaves = _signals(rng)
    data: Data = {
        "version": "v0.3",
        "listeners": _listeners(rng),
        "providers": {"defaults": {"model": rng.choice(models)}, "models": [_model(rng, name) for name in models]},
        "routing": {
            "modelCards": [_card(rng, name) for name in models],
            "signals": signals,
            "decisions": [_decision(rng, f"decision-{index}", models, leaves) for index in range(rng.randint(1, 4))],
        },
    }
    if rng.random() < 0.3:
        data["routing"]["strategy"] = rng.choice(["priority", "confidence"])
    if rng.random() < 0.3:
        data["routing"]["fallback"] = {"enabled": True, "max_attempts": 2, "total_timeout": "30s", "per_attempt_timeout": "10s"}
    if rng.random() < 0.4:
        data["routing"]["projections"] = _projections(rng, signals)
    if rng.random() < 0.4:
        recipe_signals, recipe_leaves = _signals(rng)
        data["recipes"] = [{"name": "other", "routing": {"signals": recipe_signals, "decisions": [_decision(rng, "only", models, recipe_leaves)]}}]
        data["entrypoints"] = [{"model_names": ["team/other"], "recipe": "other"}]
    settings = dict(_settings(rng))
    if _compares_texts(data):
        settings["model_catalog"] = _with_vectors(rng, settings.get("model_catalog", {}))
    if settings:
        data["global"] = settings
    return data


def _compares_texts(data: Data) -> bool:
    """What nothing makes vectors for is refused."""
    found = [*data["routing"]["decisions"], *(each for recipe in data.get("recipes", ()) for each in recipe["routing"]["decisions"])]
    plugins = [plugin["type"] for decision in found for plugin in decision.get("plugins", ())]
    return "response_cache" in plugins or any(decision.get("algorithm", {}).get("type") == "router_dc" for decision in found)


def _with_vectors(rng: random.Random, catalog: Data) -> Data:
    if rng.random() < 0.5:
        return catalog | {"embeddings": {"semantic": {"endpoint": {"base_url": "http://127.0.0.1:8200/v1", "model": "e5"}}}}
    vectors = {"provider": "model_runtime", "artifact": "/models/vectors", "device": "cpu", "input": {"max_tokens": 512, "overflow": "truncate"}}
    bindings = {"embedding": {"deployment": "vectors", "contract": "embedding.v1"}}
    return catalog | {"deployments": {**catalog.get("deployments", {}), "vectors": vectors}, "bindings": bindings}


def _listeners(rng: random.Random) -> list[Data]:
    found = [{"name": "public", "port": 8899}]
    if rng.random() < 0.5:
        found[0] |= rng.choice([{"address": "0.0.0.0"}, {"timeout": "60s"}, {"api_keys": ["k1", "k2"]}, {"models": ["model-0"]}])
    if rng.random() < 0.3:
        found.append({"name": "inner", "port": 8898, "identity": {"trust_headers": True, "trusted_peers": ["10.0.0.0/8"]}})
    return found


def _model(rng: random.Random, name: str) -> Data:
    found: Data = {"name": name, "backend_refs": [{"endpoint": f"127.0.0.1:{rng.randint(8000, 8010)}", "weight": rng.randint(0, 3)}]}
    if rng.random() < 0.3:
        found["backend_refs"] = [{"base_url": "https://example.com/v1", "provider": rng.choice(["vllm", "openai", "openrouter"]), "api_key_env": "KEY"}]
    if rng.random() < 0.4:
        found["pricing"] = {"currency": "USD", "prompt_per_1m": 0.5, "completion_per_1m": 1}
    if rng.random() < 0.4:
        found["reliability"] = {"retry_count": rng.randint(0, 5), "lb_policy": rng.choice(["round_robin", "least_request"]), "connect_timeout": "5s"}
    return found


def _card(rng: random.Random, name: str) -> Data:
    found: Data = {"name": name, "description": f"What {name} is for."}
    if rng.random() < 0.4:
        found |= {"context_window_size": 32768, "capabilities": ["chat"], "loras": [{"name": f"{name}-lora"}]}
    return found


def _signals(rng: random.Random) -> tuple[Data, list[Data]]:
    makers: list[Callable[[], tuple[str, Data, Data]]] = [
        lambda: ("keywords", {"name": "words", "operator": rng.choice(["OR", "AND"]), "keywords": ["sum", "add"]}, {"type": "keyword", "name": "words"}),
        lambda: ("context", {"name": "long", "min_tokens": "2K", "max_tokens": "64K"}, {"type": "context", "name": "long"}),
        lambda: ("language", {"name": "de", "description": "German"}, {"type": "language", "name": "de"}),
        lambda: (
            "structure",
            {"name": "digits", "feature": {"type": "count", "source": {"type": "regex", "pattern": "[0-9]"}}, "predicate": {"gte": 2}},
            {"type": "structure", "name": "digits"},
        ),
        lambda: (
            "conversation",
            {"name": "turns", "feature": {"type": "count", "source": {"type": "message", "role": "user"}}, "predicate": {"gt": 3}},
            {"type": "conversation", "name": "turns"},
        ),
        lambda: ("events", {"name": "urgent", "severities": ["critical"], "temporal": True}, {"type": "event", "name": "urgent"}),
        lambda: ("metadata", {"name": "beta", "key": "tier", "predicate": {"equals": "beta"}}, {"type": "metadata", "name": "beta"}),
        lambda: ("input_modality", {"name": "picture", "modality": "image"}, {"type": "input_modality", "name": "picture"}),
        lambda: (
            "role_bindings",
            {"name": "staff", "role": "staff", "subjects": [{"kind": "Group", "name": "staff"}]},
            {"type": "authz", "name": "staff"},
        ),
        lambda: (
            "decision",
            {"name": "harm", "question": {"type": "noul", "instructions": "Is this harmful?"}, "predicate": {"gte": 0.7}},
            {"type": "decision", "name": "harm"},
        ),
        lambda: (
            "decision",
            {
                "name": "topic",
                "question": {"type": "choice", "instructions": "Topic?", "choices": [{"key": "law", "description": "Law"}, {"key": "art", "description": "Art"}]},
            },
            {"type": "decision", "name": "topic", "label": "law"},
        ),
        lambda: ("fact_check", {"name": "needs_fact_check", "description": "Facts"}, {"type": "fact_check", "name": "needs_fact_check"}),
        lambda: ("user_feedbacks", {"name": "wrong_answer", "description": "Wrong"}, {"type": "user_feedback", "name": "wrong_answer"}),
        lambda: ("jailbreak", {"name": "attack", "threshold": 0.7}, {"type": "jailbreak", "name": "attack"}),
        lambda: ("pii", {"name": "private", "threshold": 0.5}, {"type": "pii", "name": "private"}),
        lambda: ("domains", {"name": "law", "description": "Law", "mmlu_categories": ["law"]}, {"type": "domain", "name": "law"}),
        lambda: ("preferences", {"name": "terse", "description": "Short answers"}, {"type": "preference", "name": "terse"}),
        lambda: ("modality", {"name": "AR"}, {"type": "modality", "name": "AR"}),
    ]
    signals: Data = {}
    leaves = []
    for maker in rng.sample(makers, rng.randint(2, 5)):
        collection, rule, leaf = maker()
        signals.setdefault(collection, []).append(rule)
        leaves.append(leaf)
    return signals, leaves


def _tree(rng: random.Random, leaves: list[Data], depth: int) -> Data:
    if depth == 0 or rng.random() < 0.4:
        return dict(rng.choice(leaves))
    operator = rng.choice(["AND", "OR", "NOT"])
    count = 1 if operator == "NOT" else rng.randint(1, 3)
    return {"operator": operator, "conditions": [_tree(rng, leaves, depth - 1) for _ in range(count)]}


def _decision(rng: random.Random, name: str, models: list[str], leaves: list[Data]) -> Data:
    refs = rng.sample(models, rng.randint(1, len(models)))
    rules = _tree(rng, leaves, 2)
    if "operator" not in rules:
        rules = {"operator": "AND", "conditions": [rules]}
    found: Data = {"name": name, "priority": rng.randint(0, 100), "rules": rules, "modelRefs": [{"model": ref} for ref in refs]}
    if rng.random() < 0.3:
        rules["on_unknown"] = rng.choice(["no_match", "match", "fail_request"])
    if rng.random() < 0.6:
        found["algorithm"] = _algorithm(rng, refs)
    if rng.random() < 0.5:
        found["plugins"] = rng.sample(_plugins(), rng.randint(1, 2))
    return found


def _algorithm(rng: random.Random, refs: list[str]) -> Data:
    choices: list[Data] = [
        {"type": "static"},
        {"type": "random"},
        {"type": "latency_aware", "latency_aware": {"ttft_percentile": 90}},
        {"type": "multi_factor", "multi_factor": {"weights": {"quality": 0.5, "cost": 0.5}}},
        {"type": "router_dc", "router_dc": {"temperature": 0.07}},
        {"type": "hybrid", "hybrid": {"cost_weight": 0.5}},
        {"type": "confidence", "confidence": {"confidence_method": "avg_logprob", "threshold": -1.0}},
    ]
    if len(refs) > 1:
        choices.append({"type": "decision", "decision": {"instructions": "Who is best?", "candidates": {refs[0]: "good"}}})
    return rng.choice(choices)


def _plugins() -> list[Data]:
    return [
        {"type": "system_prompt", "configuration": {"enabled": True, "system_prompt": "Be brief.", "mode": "insert"}},
        {"type": "response_cache", "configuration": {"enabled": True, "mode": "exact", "ttl_seconds": 60}},
        {"type": "header_mutation", "configuration": {"add": [{"name": "x-a", "value": "b"}]}},
        {"type": "fast_response", "configuration": {"message": "No."}},
        {"type": "request_params", "configuration": {"max_tokens_limit": 100}},
        {"type": "router_replay", "configuration": {"enabled": True}},
        {"type": "tools", "configuration": {"enabled": True, "mode": "none"}},
    ]


def _projections(rng: random.Random, signals: Data) -> Data:
    inputs = [{"type": "keyword", "name": rule["name"], "weight": 1.0} for rule in signals.get("keywords", ())]
    inputs += [{"type": "context", "name": rule["name"], "weight": 0.5} for rule in signals.get("context", ())]
    if not inputs:
        return {}
    return {
        "scores": [{"name": "weight", "method": "weighted_sum", "inputs": inputs}],
        "mappings": [{"name": "bands", "source": "weight", "method": "threshold_bands", "outputs": [{"name": "low", "lt": 0.5}, {"name": "high", "gte": 0.5}]}],
    }


def _settings(rng: random.Random) -> Data:
    parts: list[Data] = [
        {"router": {"list_backend_models": True}},
        {"services": {"response_api": {"enabled": True, "store_backend": "memory"}}},
        {"services": {"management_api": {"port": 8081}}},
        {"stores": {"response_cache": {"enabled": True, "backend_type": "memory", "max_entries": 10}}},
        {"model_catalog": {"signal_timeout_ms": 2000}},
        {"model_catalog": {"deployments": {"judge": {"provider": "model_runtime", "artifact": "/models/judge", "device": "cpu"}}}},
        {"model_catalog": {"deployments": {"away": {"provider": "model_runtime", "endpoint": "http://10.0.0.1:8100", "served_name": "judge"}}}},
    ]
    return rng.choice(parts) if rng.random() < 0.5 else {}


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
