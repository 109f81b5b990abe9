"""Loading: everything that is wrong in one go, with lines, in the words of this project."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.errors import ConfigError
from headway.router.config.diagnostics import ConfigRejected, shown
from headway.router.config.load import load_document
from tests.router.config.documents import BASE, base, changed, errors, told


def test_the_base_is_valid() -> None:
    loaded = load_document(BASE, {})
    assert loaded.document.listeners is not None
    assert loaded.document.listeners[0].address == "127.0.0.1"
    assert loaded.diagnostics == ()
    assert loaded.source.text == BASE


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "c.yaml"
    path.write_text(BASE.replace("- {name: public, port: 8899}", "- name: public\n    port: ${PORT:-9000}"))
    assert load_document(path, {}).document.listeners[0].port == 9000  # type: ignore[index]
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="UTF-8"):
        load_document(path)
    with pytest.raises(ConfigError, match="does not exist") as caught:
        load_document(tmp_path / "nowhere.yaml")
    assert caught.value.reason == "config_unreadable"


def test_every_error_of_a_file_is_told_in_one_run() -> None:
    text = (
        BASE.replace("version: v0.3", "version: v0.3\ntreshold: 1")
        .replace("port: 8899", 'port: "8899", adress: x')
        .replace("model: small}", "model: smal}", 1)
        .replace("operator: OR", "operator: XOR")
        .replace("{model: large, use_reasoning: true}", "{model: larg}")
        .replace("name: long,", "name: long, colour: red,")
        .replace("label: law", "label: lav")
    )
    with pytest.raises(ConfigRejected) as caught:
        load_document(text, {})
    found = [(each.line, shown(each.path)) for each in caught.value.diagnostics]
    assert found == [
        (2, "treshold"),
        (4, "listeners[0].port"),
        (4, "listeners[0].adress"),
        (6, "providers.defaults.model"),
        (19, "routing.signals.keywords[0].operator"),
        (21, "routing.signals.context[0].colour"),
        (32, "routing.decisions[0].rules.conditions[1].label"),
        (33, "routing.decisions[0].modelRefs[1].model"),
    ]
    assert caught.value.reason == "config_rejected"
    assert "line 4" in caught.value.message
    assert 'Did you mean "address"?' in caught.value.message
    assert 'Did you mean "small"?' in caught.value.message


def test_what_refers_to_a_wrong_part_is_not_wrong_itself() -> None:
    data = base()
    data["routing"]["signals"]["keywords"][0]["operator"] = "XOR"
    data["providers"]["models"][1]["backend_refs"] = "nothing"
    assert errors(data) == [
        ("value_invalid", "providers.models[1].backend_refs"),
        ("value_invalid", "routing.signals.keywords[0].operator"),
    ]


def test_indexes_are_those_of_the_file_when_earlier_items_are_wrong() -> None:
    data = base()
    data["listeners"] = [{"name": "a", "port": "x"}, {"name": "b", "port": 1}, 5, {"name": "c", "port": 1}]
    assert errors(data) == [
        ("value_invalid", "listeners[0].port"),
        ("value_invalid", "listeners[2]"),
        ("address_repeated", "listeners[3].port"),
    ]


@pytest.mark.parametrize(
    ("data", "message", "fix"),
    [
        (changed("listeners", 0, "port", to="8899"), 'expected a whole number; found "8899"', "Write the number without quotes"),
        (changed("listeners", 0, "port", to=70000), "expected at most 65535; found 70000", None),
        (changed("listeners", 0, "name", to=5), "expected a string; found 5", "Put quotes around it"),
        (changed("listeners", 0, "identity", to={"trust_headers": "yes"}), 'expected true or false; found "yes"', "Write true"),
        (changed("listeners", to="x"), 'expected a list; found "x"', None),
        (changed("providers", to=[]), "expected a mapping; found an empty list", None),
        (changed("routing", "strategy", to="prioritty"), 'expected "priority" or "confidence"; found "prioritty"', 'Did you mean "priority"?'),
        (changed("routing", "decisions", 0, "frob", to=1), 'unknown key "frob" in routing.decisions[0]', None),
        (changed("routing", "modelcards", to=[]), 'unknown key "modelcards" in routing', 'Did you mean "modelCards"?'),
        (changed("routing", "signals", "actions", to=[]), "actions is not supported by Headway: the action signal is not built; ask a systemone choice instead", None),
        (changed("routing", "decisions", 0, "algorithm", to={"type": "remom"}), '"remom" is not supported by Headway: use confidence, a cascade', None),
    ],
)  # fmt: skip
def test_words(data: dict[str, object], message: str, fix: str | None) -> None:
    (found,) = told(data)
    assert (found.message, found.fix) == (message, fix)
    assert found.line is not None


def test_a_key_of_both_spellings_and_nulls() -> None:
    data = base()
    data["routing"]["signals"]["decision"] = data["routing"]["signals"].pop("systemone")
    assert errors(data) == []
    assert errors(changed("routing", "projections", to=None)) == []


def test_a_file_without_a_version_points_to_the_migration() -> None:
    (found,) = told(BASE.replace("version: v0.3\n", ""))
    assert found.reason == "field_required"
    assert "vllm-sr config migrate" in str(found)


@pytest.mark.parametrize(
    ("version", "fix"),
    [("v0.2", "vllm-sr config migrate"), (0.1, "vllm-sr config migrate"), ("v0.4", "install a newer one"), ("v1.0", "install a newer one"), ("latest", "Write version: v0.3")],
)  # fmt: skip
def test_a_file_of_another_version(version: object, fix: str) -> None:
    (found,) = told(changed("version", to=version))
    assert (found.reason, found.line) == ("version_unknown", 1)
    assert fix in str(found)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (changed("global", "model_catalog", "deployments", to={"d": {"provider": "candle", "artifact": "/a"}}), "removed model execution fields"),
        (changed("global", "model_catalog", "deployments", to={"d": {"provider": "model_runtime", "artifact": "/a", "precision": "fp16"}}), "precision is one of the removed model execution fields"),
        (changed("global", "model_catalog", "deployments", to={"d": {"provider": "model_runtime", "artifact": "/a", "profile": "exact"}}), "profile was removed"),
        (changed("global", "model_catalog", "modules", to={"prompt_guard": {"use_mmbert_32k": True}}), "use_mmbert_32k is one of the removed model execution fields"),
        (changed("global", "model_catalog", "modules", to={"prompt_guard": {"variant": "x"}}), "variant is one of"),
        (changed("global", "candle", to={}), "candle is one of"),
        (changed("global", "stores", to={"response_cache": {"polarity_guard": True}}), "polarity_guard was removed"),
        (changed("routing", "signals", "fact_check", to=[{"name": "needs_fact_check", "use_nli": True}]), "use_nli was removed"),
        (changed("vllm_endpoints", to=[]), "layout of versions 0.1"),
    ],
)  # fmt: skip
def test_fields_of_earlier_versions_name_the_migration(data: dict[str, object], said: str) -> None:
    found = [each for each in told(data) if said in each.message]
    assert found, told(data)
    assert "vllm-sr config migrate" in str(found[0])
    assert found[0].line is not None


def test_warnings_stop_nothing() -> None:
    text = BASE.replace("port: 8899", "port: 8899, identity: {trust_headers: true}")
    assert [each.reason for each in load_document(text, {}).diagnostics] == ["no_trusted_peers"]


def test_engine_mode_leaves_dormant_routing_alone() -> None:
    data = changed("routing", "decisions", 0, "modelRefs", to=[{"model": "nowhere"}])
    data["global"] = {"router": {"enabled": False}}
    assert errors(data) == []
    data["listeners"][0]["systemone"] = {"models": ["nobody"]}
    assert errors(data) == [("model_undeclared", "listeners[0].systemone.models[0]")]
