"""The structure signal."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.router.signals.keyword.units import text_units
from headway.router.truth import Truth
from tests.router.routed import Routed, route, signals_of


def rule(name: str, type: str, source: dict[str, Any], **predicate: float) -> dict[str, Any]:
    return {"name": name, "feature": {"type": type, "source": source}} | ({"predicate": predicate} if predicate else {})


QUESTIONS = {"type": "regex", "pattern": "[?？]"}
LIMITS = {"type": "keyword_set", "keywords": ["under", "at most", "at least", "不超过", "至少"]}
FLOW = {"type": "sequence", "sequences": [["first", "then"], ["first", "next", "finally"], ["首先", "然后"], ["先", "再"]]}
RULES = [
    rule("many", "count", QUESTIONS, gte=4),
    rule("few", "count", QUESTIONS, lte=1),
    rule("steps", "exists", {"type": "regex", "pattern": r"(?m)^\s*\d+\.\s+"}),
    rule("flow", "sequence", FLOW),
    rule("dense", "density", LIMITS, gt=0.2),
    rule("calm", "density", QUESTIONS, lt=0.1),
    rule("long", "count", {"type": "text_bytes"}, gt=10),
]


def seen(text: str) -> Routed:
    return route(signals_of("structure", "structure", RULES), text)


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("why? how? when? who？", {"many", "long"}),
        ("why?", {"few"}),
        ("", {"few", "calm"}),
        ("do\n 1. this\n 2. that", {"few", "steps", "calm", "long"}),
        ("first this, then that", {"few", "flow", "calm", "long"}),
        ("then this, first that", {"few", "calm", "long"}),
        ("firstly, thence", {"few", "calm", "long"}),
        ("首先这样，然后那样", {"few", "flow", "calm", "long"}),
        ("先做再说", {"few", "flow", "calm", "long"}),
        ("再说先做", {"few", "calm", "long"}),
        ("First a. NEXT b. finally c", {"few", "flow", "calm", "long"}),
        ("at most 3, at least 2", {"few", "dense", "calm", "long"}),
        ("不超过三个", {"few", "calm", "long"}),
    ],
)
def test_which_rules_hold(text: str, holds: set[str]) -> None:
    found = seen(text)
    truths = {each["name"]: found[f"structure:{each['name']}"].truth for each in RULES}
    assert {name for name, truth in truths.items() if truth is Truth.TRUE} == holds


def test_the_raw_value_is_told_also_when_the_rule_does_not_hold() -> None:
    found = seen("why? how?")
    assert (found["structure:many"].truth, found["structure:many"].value) == (Truth.FALSE, 2.0)
    assert found["structure:calm"].value == pytest.approx(1.0)
    assert found["structure:long"].value == 9.0
    assert all(found[f"structure:{each['name']}"].confidence is None for each in RULES)


def test_density_is_per_unit_of_any_script() -> None:
    assert seen("至少 two, at least 3, 用python写")["structure:dense"].value == pytest.approx(2 / 9)


def test_bytes_are_those_of_utf8() -> None:
    assert seen("é发😀")["structure:long"].value == 9.0


@settings(deadline=None)
@given(st.text("ab1_ ,.发カ한é\n", max_size=40))
def test_units(text: str) -> None:
    """Each CJK character is one, each run of other letters and digits is one."""
    words = re.findall(r"[ab1é]+", text)
    assert text_units(text) == re.findall(r"[发カ한]|[ab1é]+", text)
    assert len(text_units(text)) == len(words) + sum(character in "发カ한" for character in text)


def test_words_that_overlap_count_once_and_the_longest_first() -> None:
    source = {"type": "keyword_set", "keywords": ["no", "no more than", "more"]}
    found = route(signals_of("structure", "structure", [rule("n", "count", source, gte=1)]), "no more than two, no more")
    assert found["structure:n"].value == 3.0


def test_words_of_a_sequence_do_not_share_letters() -> None:
    rules = [rule("flow", "sequence", {"type": "sequence", "sequences": [["no more", "more than"]]})]
    built = signals_of("structure", "structure", rules)
    assert route(built, "no more than two")["structure:flow"].truth is Truth.FALSE
    assert route(built, "no more, and more than two")["structure:flow"].truth is Truth.TRUE


def test_a_pattern_that_would_blow_up_a_backtracking_engine_is_linear() -> None:
    source = {"type": "regex", "pattern": "(a+)+$"}
    found = route(signals_of("structure", "structure", [rule("n", "count", source, gte=1)]), "a" * 50_000 + "!")
    assert found["structure:n"].value == 0.0


def test_equal_sources_are_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from headway.router.signals import structure

    made: list[str] = []
    real = structure._measure
    monkeypatch.setattr(structure, "_measure", lambda source: made.append(source.type) or real(source))
    seen("why?")
    assert sorted(made) == ["keyword_set", "regex", "regex", "sequence", "text_bytes"]


def test_case() -> None:
    rules = [rule(name, "count", {"type": "regex", "pattern": "todo", "case_sensitive": name == "exact"}, gte=1) for name in ("exact", "any")]
    found = route(signals_of("structure", "structure", rules), "TODO todo")
    assert (found["structure:exact"].value, found["structure:any"].value) == (1.0, 2.0)
