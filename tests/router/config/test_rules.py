"""Rules across fields: one defect each, with where it is told."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import orjson
import pytest

from headway.router.catalog.built_in_models import BUILT_IN_MODELS
from tests.router.config.documents import base, changed, errors, told

RULES = ("routing", "decisions", 0, "rules")
MODEL = ("providers", "models", 0)
DEPLOYMENTS = ("global", "model_catalog", "deployments")
BINDINGS = ("global", "model_catalog", "bindings")
SIGNALS = ("routing", "signals")


def leaf(**fields: Any) -> dict[str, Any]:
    return {"operator": "AND", "conditions": [fields]}


def question(**fields: Any) -> dict[str, Any]:
    return {"name": "q", **fields}


DEFECTS: dict[str, tuple[dict[str, Any], str, str]] = {
    # listeners
    "two listeners at one address": (changed("listeners", 1, to={"name": "b", "port": 8899}), "address_repeated", "listeners[1].port"),
    "two listeners of one name": (changed("listeners", 1, to={"name": "public", "port": 1}), "name_repeated", "listeners[1].name"),
    "a grant of nobody": (changed("listeners", 0, "systemone", to={"models": ["nobody"]}), "model_undeclared", "listeners[0].systemone.models[0]"),
    "a grant that two deployments have": (
        {**changed("listeners", 0, "systemone", to={"models": ["judge"]}), "global": {"model_catalog": {"deployments": {
            "a": {"provider": "model_runtime", "artifact": "/a", "public_name": "judge"},
            "b": {"provider": "model_runtime", "artifact": "/b", "public_name": "judge"},
        }}}}, "name_ambiguous", "listeners[0].systemone.models[0]",
    ),
    "an empty API key": (changed("listeners", 0, "api_keys", to=[""]), "value_invalid", "listeners[0].api_keys[0]"),
    "a network that is none": (
        changed("listeners", 0, "identity", to={"trusted_peers": ["10.0.0.0/99"]}), "value_invalid", "listeners[0].identity.trusted_peers[0]",
    ),
    # providers and cards
    "two models of one name": (changed("providers", "models", 2, to={**base()["providers"]["models"][0]}), "name_repeated", "providers.models[2].name"),
    "two cards of one name": (changed("routing", "modelCards", 2, to={"name": "small"}), "name_repeated", "routing.modelCards[2].name"),
    "a card of nobody": (changed("routing", "modelCards", 2, to={"name": "smal"}), "model_undeclared", "routing.modelCards[2].name"),
    "a default model that is not there": (changed("providers", "defaults", "model", to="smal"), "model_undeclared", "providers.defaults.model"),
    "a model without a backend": (changed(*MODEL, "backend_refs", to=[]), "backend_missing", "providers.models[0].backend_refs"),
    "an unknown provider": (
        changed(*MODEL, "backend_refs", 0, "provider", to="opnai"), "provider_unknown", "providers.models[0].backend_refs[0].provider",
    ),
    "a backend without an address": (changed(*MODEL, "backend_refs", to=[{"name": "x"}]), "address_missing", "providers.models[0].backend_refs[0]"),
    "a backend with two addresses": (
        changed(*MODEL, "backend_refs", 0, "base_url", to="http://h"), "value_invalid", "providers.models[0].backend_refs[0]",
    ),
    "an unknown family": (changed(*MODEL, "reasoning", to={"family": "qwen33"}), "family_unknown", "providers.models[0].reasoning.family"),
    "a catalogue": (changed(*MODEL, "catalog", to="openai/gpt-5"), "not_supported", "providers.models[0].catalog"),
    "a chat model with a deployment": (changed(*MODEL, "deployment", to="primary"), "model_incoherent", "providers.models[0].deployment"),
    "a native model of nobody": (
        changed("providers", "models", 2, to={"name": "n", "api_format": "systemone", "deployment": "nowhere"}),
        "deployment_unknown", "providers.models[2].deployment",
    ),
    # model references
    "an undeclared model": (changed("routing", "decisions", 0, "modelRefs", to=[{"model": "smal"}]), "model_undeclared", "routing.decisions[0].modelRefs[0].model"),
    "an undeclared LoRA": (
        changed("routing", "decisions", 0, "modelRefs", to=[{"model": "small", "lora_name": "small-lav"}]),
        "lora_undeclared", "routing.decisions[0].modelRefs[0].lora_name",
    ),
    "a native model for chats": (
        {**changed("routing", "decisions", 0, "modelRefs", to=[{"model": "n"}]), "providers": {"models": [
            {"name": "small", "backend_refs": [{"endpoint": "h:1"}]}, {"name": "large", "backend_refs": [{"endpoint": "h:1"}]},
            {"name": "n", "api_format": "systemone", "deployment": "primary"},
        ]}}, "model_wrong_api", "routing.decisions[0].modelRefs[0].model",
    ),
    "an effort while reasoning is off": (
        changed("routing", "decisions", 0, "modelRefs", to=[{"model": "large", "reasoning_effort": "high"}]),
        "reasoning_refused", "routing.decisions[0].modelRefs[0]",
    ),
    "a mode that the family lacks": (
        changed("routing", "decisions", 0, "modelRefs", to=[{"model": "large", "use_reasoning": True, "reasoning_mode": "adaptive"}]),
        "reasoning_refused", "routing.decisions[0].modelRefs[0]",
    ),
    "a mode without a family": (
        changed("routing", "decisions", 0, "modelRefs", to=[{"model": "small", "use_reasoning": True, "reasoning_mode": "enabled"}]),
        "reasoning_refused", "routing.decisions[0].modelRefs[0]",
    ),
    # conditions
    "an undeclared signal": (changed(*RULES, to=leaf(type="keyword", name="word")), "signal_undeclared", "routing.decisions[0].rules.conditions[0].name"),
    "an undeclared projection": (changed(*RULES, to=leaf(type="projection", name="x")), "signal_undeclared", "routing.decisions[0].rules.conditions[0].name"),
    "a choice without a label": (changed(*RULES, to=leaf(type="systemone", name="topic")), "label_undeclared", "routing.decisions[0].rules.conditions[0].label"),
    "a choice with another label": (
        changed(*RULES, to=leaf(type="systemone", name="topic", label="lav")), "label_undeclared", "routing.decisions[0].rules.conditions[0].label",
    ),
    "a noul with a label": (changed(*RULES, to=leaf(type="systemone", name="harm", label="yes")), "label_refused", "routing.decisions[0].rules.conditions[0].label"),
    # questions
    "an unknown deployment asked": (
        changed(*SIGNALS, "systemone", 0, "deployment", to="primar"), "deployment_unknown", "routing.signals.systemone[0].deployment",
    ),
    "an unknown decision model": (
        changed("global", "model_catalog", "system", to={"decision_model": {"deployment": "primar"}}),
        "deployment_unknown", "global.model_catalog.system.decision_model.deployment",
    ),
    "a name that is a set's answer": (
        changed(*SIGNALS, "systemone", to=[
            question(question={"type": "set", "instructions": "?", "labels": [{"key": "a"}]}),
            {"name": "q.a", "question": {"type": "noul", "instructions": "?"}},
            *base()["routing"]["signals"]["systemone"],
        ]), "name_ambiguous", "routing.signals.systemone[1].name",
    ),
    # algorithms
    "a foreign block": (
        changed("routing", "decisions", 0, "algorithm", to={"type": "static", "hybrid": {"cost_weight": 0.5}}),
        "algorithm_block", "routing.decisions[0].algorithm.hybrid",
    ),
    "no percentile": (
        changed("routing", "decisions", 0, "algorithm", to={"type": "latency_aware", "latency_aware": {}}),
        "percentile_missing", "routing.decisions[0].algorithm.latency_aware",
    ),
    "weights that are all zero": (
        changed("routing", "decisions", 0, "algorithm", to={
            "type": "hybrid", "hybrid": {"experience_weight": 0.0, "router_dc_weight": 0.0, "automix_weight": 0.0, "cost_weight": 0.0},
        }), "weights_zero", "routing.decisions[0].algorithm.hybrid",
    ),
    "too few candidates": (
        changed("routing", "decisions", 0, "algorithm", to={"type": "static", "minimum_candidates": 3}),
        "candidates_missing", "routing.decisions[0].algorithm.minimum_candidates",
    ),
    "a chooser with a stranger": (
        changed("routing", "decisions", 0, "algorithm", to={"type": "decision", "decision": {"instructions": "?", "candidates": {"smal": "x"}}}),
        "model_undeclared", "routing.decisions[0].algorithm.decision.candidates.smal",
    ),
    # deployments and bindings
    "a deployment of another kind": (changed(*DEPLOYMENTS, to={"d": {"provider": "http"}}), "not_supported", "global.model_catalog.deployments.d.provider"),
    "services of other kinds": (changed("global", "model_catalog", "external", to=[]), "not_supported", "global.model_catalog.external"),
    "a classifier that is a service": (
        changed(*SIGNALS, "classifiers", to=[{"name": "c", "type": "sequence_classifier", "labels": ["a", "b"], "model": "x"}]),
        "not_supported", "routing.signals.classifiers[0].model",
    ),
    "traces": (changed("global", "services", to={"observability": {"tracing": {"enabled": True}}}), "not_supported", "global.services.observability.tracing.enabled"),
    "an unknown consumer": (
        changed(*BINDINGS, to={"promt_guard": {"deployment": "primary", "contract": "label_distribution.v1"}}),
        "consumer_unknown", "global.model_catalog.bindings.promt_guard",
    ),
    "another contract": (
        changed(*BINDINGS, to={"prompt_guard": {"deployment": "primary", "contract": "token_spans.v1"}}),
        "contract_unfit", "global.model_catalog.bindings.prompt_guard.contract",
    ),
    "a binding to nobody": (
        changed(*BINDINGS, to={"prompt_guard": {"deployment": "x", "contract": "label_distribution.v1"}}),
        "deployment_unknown", "global.model_catalog.bindings.prompt_guard.deployment",
    ),
    "a binding for a rule that is not there": (
        changed("routing", "model_bindings", to={"classifier.c": {"deployment": "primary", "contract": "label_scores.v1"}}),
        "consumer_unknown", 'routing.model_bindings["classifier.c"]',
    ),
    "admission of nobody": (changed("global", "model_catalog", "admission", to={"x": {}}), "deployment_unknown", "global.model_catalog.admission.x"),
    # recipes
    "a reserved recipe": (changed("recipes", to=[{"name": "@global", "routing": {}}]), "name_reserved", "recipes[0].name"),
    "a second default": (changed("recipes", to=[{"name": "default", "routing": {}}]), "name_repeated", "recipes[0].name"),
    "an entrypoint to nowhere": (changed("entrypoints", to=[{"model_names": ["x"], "recipe": "y"}]), "recipe_undeclared", "entrypoints[0].recipe"),
    "an entrypoint with a model's name": (
        changed("entrypoints", to=[{"model_names": ["small"], "recipe": "default"}]), "name_ambiguous", "entrypoints[0].model_names[0]",
    ),
    "a name that leads to two recipes": (
        changed("entrypoints", to=[{"model_names": ["x"], "recipe": "default"}] * 2), "name_repeated", "entrypoints[1].model_names[0]",
    ),
    # projections
    "a mapping of nothing": (
        changed("routing", "projections", to={"mappings": [{"name": "m", "source": "s", "outputs": [{"name": "o", "lt": 1.0}]}]}),
        "score_undeclared", "routing.projections.mappings[0].source",
    ),
    "a score of nothing": (
        changed("routing", "projections", to={"scores": [{"name": "s", "inputs": [{"type": "keyword", "name": "word", "weight": 1.0}]}]}),
        "signal_undeclared", "routing.projections.scores[0].inputs[0].name",
    ),
    "scores in a circle": (
        changed("routing", "projections", to={"scores": [
            {"name": "a", "inputs": [{"type": "projection", "name": "b", "weight": 1.0, "value_source": "raw"}]},
            {"name": "b", "inputs": [{"type": "projection", "name": "a", "weight": 1.0, "value_source": "raw"}]},
        ]}), "score_cycle", "routing.projections.scores",
    ),
    "a partition of a stranger": (
        changed("routing", "projections", to={"partitions": [{"name": "p", "semantics": "exclusive", "members": ["x"], "default": "x"}]}),
        "signal_undeclared", "routing.projections.partitions[0].members[0]",
    ),
    # what decisions do
    "a plugin twice": (
        changed("routing", "decisions", 0, "plugins", to=[{"type": "fast_response", "configuration": {"message": "a"}}] * 2),
        "plugin_repeated", "routing.decisions[0].plugins[1]",
    ),
    "a plugin with a stranger's key": (
        changed("routing", "decisions", 0, "plugins", to=[{"type": "fast_response", "configuration": {"message": "a", "mesage": "b"}}]),
        "unknown_key", "routing.decisions[0].plugins[0].configuration.mesage",
    ),
    "two decisions of one name": (changed("routing", "decisions", 1, to=base()["routing"]["decisions"][0]), "name_repeated", "routing.decisions[1].name"),
    "an endpoint that is no host": (changed(*MODEL, "backend_refs", to=[{"endpoint": "::1"}]), "address_invalid", "providers.models[0].backend_refs[0].endpoint"),
    "a port that is none": (changed(*MODEL, "backend_refs", to=[{"endpoint": "h:99999"}]), "address_invalid", "providers.models[0].backend_refs[0].endpoint"),
    "an address of another scheme": (changed(*MODEL, "backend_refs", to=[{"base_url": "ftp://h/v1"}]), "address_invalid", "providers.models[0].backend_refs[0].base_url"),
    "a socket without its place": (changed(*MODEL, "backend_refs", to=[{"endpoint": "unix://run.sock"}]), "address_invalid", "providers.models[0].backend_refs[0].endpoint"),
    "a source of conversations that vllm-sr has": (
        changed(*SIGNALS, "conversation", to=[{"name": "c", "feature": {"type": "exists", "source": {"type": "tool_choice_required"}}}]), "not_supported",
        "routing.signals.conversation[0].feature.source.type",
    ),
    "on_unscanned of a question that reads the beginning": (
        changed(*RULES, "conditions", 1, to={"type": "systemone", "name": "topic", "label": "law", "on_unscanned": "match"}), "on_unscanned",
        "routing.decisions[0].rules.conditions[1].on_unscanned",
    ),
    "a hand-off without a guard": (changed("routing", "decisions", 0, "action", to={"type": "route", "destination": "x"}), "action_unguarded", "routing.decisions[0].action"),
    "many annotations": (changed("routing", "decisions", 0, "annotations", to={str(n): n for n in range(33)}), "annotations_too_large", "routing.decisions[0].annotations"),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_a_defect_is_told_where_it_is(name: str) -> None:
    data, reason, path = DEFECTS[name]
    assert errors(data) == [(reason, path)]
    assert all(each.line is not None for each in told(data))


def test_a_wrong_expression_is_told_at_its_rule() -> None:
    feature = {"type": "count", "source": {"type": "regex", "pattern": "("}}
    data = changed(*SIGNALS, "structure", to=[{"name": "fine", "feature": {"type": "exists", "source": {"type": "regex", "pattern": "a"}}}, {"name": "bad", "feature": feature, "predicate": {"gte": 1.0}}])
    data["routing"]["decisions"][0]["rules"] = {
        "operator": "OR", "conditions": [{"type": "structure", "name": "fine"}, {"type": "structure", "name": "bad"}, *data["routing"]["decisions"][0]["rules"]["conditions"]],
    }  # fmt: skip
    ((_, path),) = errors(data)
    assert path.startswith("routing.signals.structure[1]")


@pytest.mark.parametrize(
    ("deployment", "warned"),
    [
        ({"artifact": "somebody/model"}, True),
        ({"artifact": "somebody/model", "revision": "0" * 40}, False),
        ({"artifact": "/", "public_name": "mine"}, False),
        ({"artifact": "vllm-sr/Vela-2.0-0.3B"}, False),
        ({"artifact": "VLLM-SR/vela-2.0-0.3b"}, False),
        ({"artifact": "somebody/model", "endpoint": "http://h:1"}, False),
    ],
)
def test_unpinned_models_are_a_warning(deployment: dict[str, Any], warned: bool) -> None:
    found = told(changed(*DEPLOYMENTS, to={"d": {"provider": "model_runtime", **deployment}}))
    assert [(each.reason, each.severity) for each in found] == ([("revision_missing", "warning")] if warned else [])


@pytest.mark.parametrize(
    ("deployment", "warned"),
    [
        ({"artifact": "/nowhere/model"}, True),
        ({"artifact": "/"}, False),
        ({"artifact": "/nowhere/model", "endpoint": "http://h:1"}, False),
        ({"artifact": "/nowhere/model", "replicas": [{"endpoint": "http://h:1"}, {"device": "cpu"}]}, True),
    ],
)
def test_a_local_package_that_is_not_there_is_a_warning(deployment: dict[str, Any], warned: bool) -> None:
    found = told(changed(*DEPLOYMENTS, to={"d": {"provider": "model_runtime", **deployment}}))
    assert [(each.reason, each.severity) for each in found] == ([("artifact_absent", "warning")] if warned else [])


@pytest.mark.parametrize(
    ("settings", "warned"),
    [
        ({"bind_address": "127.0.0.1"}, False),
        ({"bind_address": "::1"}, False),
        ({"bind_address": "localhost"}, False),
        ({"bind_address": "0.0.0.0"}, True),
        ({"bind_address": "10.0.0.1", "auth": {"mode": "bearer", "tokens": [{"env": "T", "role": "admin"}]}}, False),
    ],
)
def test_an_open_management_address_is_a_warning(settings: dict[str, Any], warned: bool) -> None:
    found = [each for each in told(changed("global", "services", to={"management_api": settings})) if each.reason != "environment_unset"]
    assert [(each.reason, each.severity) for each in found] == ([("management_open", "warning")] if warned else [])


@pytest.mark.parametrize(
    ("ref", "reason", "asked"),
    [
        ({"endpoint": "localhost"}, "endpoint_without_port", "port 80 is asked"),
        ({"endpoint": "gpu", "protocol": "https"}, "endpoint_without_port", "port 443 is asked"),
        ({"base_url": "localhost"}, "endpoint_without_port", "port 80 is asked"),
        ({"endpoint": "http://host/v1"}, "endpoint_is_url", "read as base_url: http://host/v1, port 80"),
        ({"endpoint": "http://host:8000/"}, "endpoint_is_url", "read as base_url: http://host:8000/v1"),
        ({"endpoint": "host:8000"}, None, ""),
        ({"endpoint": "[::1]:8000"}, None, ""),
        ({"endpoint": "unix:///run/engine.sock"}, None, ""),
        ({"base_url": "https://llm.example.com/v1"}, None, ""),
        ({"provider": "anthropic"}, None, ""),
    ],
)
def test_addresses_that_are_asked_otherwise_than_they_look_are_a_warning(ref: dict[str, Any], reason: str | None, asked: str) -> None:
    """What is told is what is asked: the compiled backend has that address."""
    found = told(changed(*MODEL, "backend_refs", to=[ref]))
    assert [(each.reason, each.severity) for each in found] == ([(reason, "warning")] if reason else [])
    assert all(asked in each.message for each in found)


@pytest.mark.parametrize(("weights", "warned"), [([0], True), ([0, 0], True), ([0, 1], False), ([1], False)])
def test_models_out_of_service_are_a_warning(weights: list[int], warned: bool) -> None:
    refs = [{"endpoint": f"127.0.0.1:{8000 + at}", "weight": weight} for at, weight in enumerate(weights)]
    found = told(changed(*MODEL, "backend_refs", to=refs))
    assert [(each.reason, each.severity, each.path) for each in found] == ([("model_resting", "warning", (*MODEL, "backend_refs"))] if warned else [])


@pytest.mark.parametrize(
    ("cache", "other", "warned"),
    [
        ({"enabled": True}, {"enabled": True}, True),
        ({"enabled": False}, {"enabled": True}, False),
        ({"enabled": True}, {"enabled": False}, False),
        ({"enabled": True, "personalized": {"mode": "exact"}}, {"enabled": True}, False),
    ],
)
def test_a_cache_that_masking_switches_off_is_a_warning_and_nothing_is_logged(
    cache: dict[str, Any], other: dict[str, Any], warned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    plugins = [{"type": "response_cache", "configuration": {"mode": "exact", **cache}}, {"type": "masking", "configuration": other}]
    found = [each for each in told(changed("routing", "decisions", 0, "plugins", to=plugins)) if "response_cache" in each.message]
    assert [(each.reason, each.severity) for each in found] == ([("cache_off", "warning")] if warned else [])
    assert caplog.records == []


def test_the_built_in_models_are_those_of_the_runtime() -> None:
    known = orjson.loads(files("headway.runtime.loading").joinpath("builtins.json").read_bytes())
    assert set(known) == BUILT_IN_MODELS


def test_defaults_of_deployments_can_be_taken_away() -> None:
    assert errors(changed(*DEPLOYMENTS, to=None))[0][0] == "deployment_unknown"  # the questions have nobody to ask
    assert errors(changed(*DEPLOYMENTS, to={"hazard": None})) == []
    assert {path for _, path in errors(changed(*DEPLOYMENTS, to={"primary": None}))} == {
        "routing.signals.systemone[0].deployment",
        "routing.signals.systemone[1].deployment",
    }


def test_the_recipe_default_may_stand_below_recipes_when_the_top_says_nothing() -> None:
    data = base()
    cards = data["routing"].pop("modelCards")
    data["recipes"] = [{"name": "default", "routing": data["routing"]}]
    data["routing"] = {"modelCards": cards}
    assert errors(data) == []


def test_recipes_do_not_see_each_others_signals() -> None:
    data = base()
    data["recipes"] = [{"name": "other", "routing": {"decisions": [base()["routing"]["decisions"][0]]}}]
    assert {reason for reason, _ in errors(data)} == {"signal_undeclared"}
    assert all(path.startswith("recipes[0].routing.decisions[0]") for _, path in errors(data))
