"""Rule trees that would load and mean something else: each is refused, with the decision, the node and the line."""

from __future__ import annotations

from textwrap import indent

import pytest

from headway.router.config.diagnostics import ConfigRejected
from headway.router.config.load import load_document

HEAD = """\
version: v0.3
providers:
  defaults: {model: large}
  models:
    - name: large
      backend_refs: [{endpoint: "127.0.0.1:8000"}]
routing:
  modelCards: [{name: large}]
  signals:
    keywords:
      - {name: billing_words, operator: OR, keywords: [invoice]}
    complexity:
      - name: needs_reasoning
        threshold: 0.1
        hard: {candidates: [prove it]}
        easy: {candidates: [say hi]}
  decisions:
    - name: billing
      modelRefs: [{model: MODEL}]
      rules:
"""
OK = "{type: keyword, name: billing_words}"


def rejected(rules: str, model: str = "large") -> list[str]:
    with pytest.raises(ConfigRejected) as caught:
        load_document(HEAD.replace("MODEL", model) + indent(rules, " " * 8))
    return [str(each) for each in caught.value.diagnostics if each.severity == "error"]


BROKEN = {
    "unknown operator": (f"operator: XOR\nconditions: [{OK}]", "rules.operator", '"AND", "OR" or "NOT"'),
    "NOT of two": (f"operator: NOT\nconditions: [{OK}, {OK}]", "rules", "NOT has exactly one condition, found 2"),
    "NOT of nothing": ("operator: NOT\nconditions: []", "rules", "NOT has exactly one condition, found 0"),
    "a condition with conditions": (f"conditions:\n  - {OK}\n  - {{type: keyword, name: billing_words, conditions: [{OK}]}}", "rules.conditions[1]", "not|either a condition or a combination"),
    "a name alone": ("name: billing_words", "rules", "type is missing"),
    "a type alone": (f"conditions:\n  - {OK}\n  - {{type: keyword}}", "rules.conditions[1]", "name is missing"),
    "an empty node": ("{}", "rules", "empty node"),
    "an empty nested node": (f"conditions:\n  - {OK}\n  - {{}}", "rules.conditions[1]", "empty node"),
    "an empty nested AND": (f"operator: OR\nconditions: [{OK}, {{operator: AND, conditions: []}}]", "rules.conditions[1]", "AND without conditions"),
    "OR of nothing": ("operator: OR\nconditions: []", "rules", "OR without conditions"),
    "an unknown type": (f"conditions:\n  - {OK}\n  - {{type: keywords, name: billing_words}}", "rules.conditions[1].type", '"keyword"'),
    "an undefined signal": ("conditions:\n  - {type: keyword, name: billing_word}", "rules.conditions[0].name", 'Did you mean "billing_words"?'),
    "a rule without its level": (f"conditions:\n  - {OK}\n  - {{type: complexity, name: needs_reasoning}}", "rules.conditions[1].name", "needs_reasoning:hard"),
    "a policy that is not at the root": (f"conditions: [{{operator: AND, conditions: [{OK}], on_unknown: match}}]", "rules.conditions[0]", "on_unknown belongs to the root"),
    "a label for a keyword": ("{type: keyword, name: billing_words, label: x}", "rules", "label"),
    "on_error for a keyword": ("{type: keyword, name: billing_words, on_error: match}", "rules", "on_error"),
    "on_unscanned for a keyword": ("{type: keyword, name: billing_words, on_unscanned: match}", "rules", "on_unscanned is only for conditions on systemone"),
    "on_error below on_unknown": (
        "operator: AND\non_unknown: match\nconditions: [{type: systemone, name: q, on_error: match}]", "rules", "on_error has no meaning below on_unknown",
    ),
    "a misspelt key": (f"operater: OR\nconditions: [{OK}]", "rules.operater", '"operator"'),
}


@pytest.mark.parametrize("name", BROKEN)
def test_refused_with_decision_node_and_line(name: str) -> None:
    rules, node, says = BROKEN[name]
    found = rejected(rules)
    assert len(found) == 1, found
    assert 'decision "billing"' in found[0]
    assert node in found[0]
    assert any(part in found[0] for part in says.split("|"))
    assert found[0].startswith("line "), found
    assert int(found[0].removeprefix("line ").split(":")[0]) >= 20


def test_an_undeclared_model() -> None:
    (found,) = rejected(OK, model="larg")
    assert "larg" in found
    assert 'Did you mean "large"?' in found


def test_all_defects_in_one_run() -> None:
    found = rejected(f"conditions:\n  - {{type: keyword}}\n  - {{operator: XOR, conditions: [{OK}]}}\n  - {{}}", model="large")
    assert [sum(node in each for each in found) for node in ("conditions[0]", "conditions[1]", "conditions[2]")] == [1, 1, 1]


@pytest.mark.parametrize(
    "rules",
    [OK, f"conditions: [{OK}]", f"operator: and\nconditions: [{OK}]", f"operator: Not\nconditions: [{OK}]", "operator: AND", "operator: AND\nconditions: []",
     f"on_unknown: fail_request\nconditions: [{OK}]", "{type: keyword, name: billing_words, on_unknown: match}", "{type: complexity, name: 'needs_reasoning:hard'}"],
)  # fmt: skip
def test_accepted(rules: str) -> None:
    if "complexity" in rules:
        (found,) = load_or_reject(rules) or ("",)
        assert "signal_undeclared" not in found
        return
    assert load_or_reject(rules) is None


def load_or_reject(rules: str) -> tuple[str, ...] | None:
    try:
        load_document(HEAD.replace("MODEL", "large") + indent(rules, " " * 8))
    except ConfigRejected as error:
        return tuple(str(each) for each in error.diagnostics if each.severity == "error")
    return None


def test_an_omitted_operator_is_and() -> None:
    loaded = load_document(HEAD.replace("MODEL", "large") + indent(f"conditions: [{OK}]", " " * 8))
    rules = loaded.document.routing.decisions[0].rules  # type: ignore[union-attr,index]
    assert rules is not None
    assert rules.operator is None
    from headway.router.decisions.engine import is_catch_all

    assert not is_catch_all(rules)
