"""Configurations made from a seed: valid ones over most of the document, and the same with one defect each."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import yaml

from tests.router.config.defects import DEFECTS

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
