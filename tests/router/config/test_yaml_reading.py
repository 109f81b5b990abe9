"""YAML texts: the data, the lines, and texts that are meant to hurt."""

from __future__ import annotations

import re

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from headway.router.config.yaml_reading import MAX_DEPTH, read_yaml


def reasons(text: str, environment: dict[str, str] | None = None) -> list[tuple[str, int | None]]:
    return [(each.reason, each.line) for each in read_yaml(text, environment or {}).diagnostics]


def test_lines_of_keys_and_items() -> None:
    read = read_yaml("a: 1\nb:\n  - x\n  - c: 2\n    d: 3\n", {})
    assert read.data == {"a": 1, "b": ["x", {"c": 2, "d": 3}]}
    assert {path: line for path, line in read.lines.items() if path} == {
        ("a",): 1, ("b",): 2, ("b", 0): 3, ("b", 1): 4, ("b", 1, "c"): 4, ("b", 1, "d"): 5,
    }  # fmt: skip
    assert read.line(("b", 1, "nowhere", "below")) == 4


def test_scalars_are_those_of_yaml_1_2_and_times_stay_text() -> None:
    read = read_yaml("{a: yes, b: true, c: 0x1F, d: 1e3, e: ~, f: 2026-10-20, g: '5', h: 1_000, i: -2.5}", {})
    assert read.data == {"a": "yes", "b": True, "c": 31, "d": 1000.0, "e": None, "f": "2026-10-20", "g": "5", "h": 1000, "i": -2.5}


def test_numbers_fit_into_64_bits() -> None:
    assert reasons(f"a: {2**63 - 1}\nb: {-(2**63)}\nc: {2**64}\nd: 1{'0' * 30}\n") == [("value_invalid", 3), ("value_invalid", 4)]
    assert reasons("a: ${N}", {"N": "9" * 30}) == [("value_invalid", 1)]


def test_merge_keys_and_their_lines() -> None:
    read = read_yaml("base: &b {x: 1, y: 2}\nuse:\n  y: 3\n  <<: *b\n  z: 4\n", {})
    assert read.data is not None
    assert read.data["use"] == {"y": 3, "x": 1, "z": 4}
    assert read.lines[("use", "y")] == 3
    assert read.lines[("use", "x")] == 1


def test_a_key_that_overrides_a_merged_one_is_no_repetition() -> None:
    assert reasons("b: &b {x: 1}\nu: {<<: *b, x: 2}") == []


@pytest.mark.parametrize(
    ("text", "reason", "line"),
    [
        ("", "config_empty", None),
        ("# only a comment\n", "config_empty", None),
        ("~", "config_empty", 1),
        ("[1]", "config_not_a_mapping", 1),
        ("a: 1\n---\nb: 2\n", "yaml_several_documents", 3),
        ("a: 1\nb: [1,\n", "yaml_invalid", 3),
        ("a: 1\na: 2\n", "key_repeated", 2),
        ("a:\n  - {b: 1, c: 2,\n     b: 3}\n", "key_repeated", 3),
        ("? [1]\n: 2\n", "key_invalid", 1),
        ("u: {<<: 5}", "key_invalid", 1),
        ("a: !!python/object:os.system x", "tag_unknown", 1),
        ("a: !!python/object:os.system {}", "tag_unknown", 1),
        ("a: &a [*a]", "config_too_deep", 1),
    ],
)
def test_what_is_refused(text: str, reason: str, line: int | None) -> None:
    assert reasons(text) == [(reason, line)]


def test_all_repetitions_are_reported() -> None:
    assert reasons("a: 1\nb: {c: 1, c: 2}\na: 3\n") == [("key_repeated", 2), ("key_repeated", 3)]


def test_aliases_cannot_grow_without_bound() -> None:
    levels = "".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]\n" for n in range(1, 9))
    assert reasons("l0: &l0 [1, 1, 1, 1, 1, 1, 1, 1, 1]\n" + levels)[-1][0] == "config_too_large"


@pytest.mark.parametrize("text", ["[" * 5000, "a: " + "{a: " * (MAX_DEPTH + 1) + "1" + "}" * (MAX_DEPTH + 1)])
def test_depth_is_bounded(text: str) -> None:
    assert reasons(text)[0][0] in ("config_too_deep", "yaml_invalid")


def test_references_are_replaced_and_plain_scalars_read_again() -> None:
    read = read_yaml("a: ${N}\nb: \"${N}\"\nc: ${F:-true}\nd: x${N}y\ne: ${E:-}\n", {"N": "5"})
    assert read.data == {"a": 5, "b": "5", "c": True, "d": "x5y", "e": None}


def test_a_value_from_the_environment_cannot_bring_structure() -> None:
    read = read_yaml("a: ${N}\n", {"N": "{b: 1}\n- c"})
    assert read.data == {"a": "{b: 1}\n- c"}


def test_an_unset_variable_is_a_warning_with_its_line() -> None:
    (told,) = read_yaml("a: 1\nb: ${NOPE}\n", {}).diagnostics
    assert (told.reason, told.line, told.severity) == ("environment_unset", 2, "warning")
    assert "NOPE" in told.message


@given(st.text(max_size=200))
def test_no_text_makes_it_raise(text: str) -> None:
    read = read_yaml(text, {})
    assert read.data is not None or read.diagnostics


# pyyaml writes YAML 1.1, in which 0E0 and 0o7 are texts that need no quotes.
_NUMBER_OF_1_2 = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|0o[0-7]+")
_TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=12).filter(lambda text: not _NUMBER_OF_1_2.fullmatch(text))
_SCALARS = st.none() | st.booleans() | st.integers(-(10**6), 10**6) | _TEXTS
_KEYS = st.text("abcxyz_", min_size=1, max_size=5)


@given(st.dictionaries(_KEYS, st.recursive(_SCALARS, lambda below: st.lists(below, max_size=3) | st.dictionaries(_KEYS, below, max_size=3)), max_size=4))
def test_what_pyyaml_writes_is_read_the_same(data: dict[str, object]) -> None:
    text = yaml.safe_dump(data, allow_unicode=True).replace("$", "$$")
    read = read_yaml(text, {})
    assert read.data == data
    assert not read.diagnostics
