"""The scanner takes what Python's own JSON reader takes, wherever the text is cut."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.server.tools.json_scanner import JsonScanner

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
BITS = st.lists(st.sampled_from([*'{}[]:,"\\ ', "1", "-", "0", ".5", "e", "+3", "true", "nul", "l", '"a"', '"a":', "\\u12", "aF", "{}", '{"b": ']), max_size=12).map("".join)


def scanned(text: str, size: int) -> str | None:
    scanner = JsonScanner()
    written = ""
    for start in range(0, len(text), size):
        end, more = scanner.push(text[start : start + size], 0)
        written += more
        if scanner.done:
            return written if not text[start + end :].strip(" \t\r\n") else None
    scanner.close()
    return written if scanner.done else None


def accepted(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


@given(text=VALUES.map(json.dumps) | VALUES.map(lambda v: json.dumps(v, indent=1, ensure_ascii=False)) | BITS, size=st.integers(1, 9))
@settings(max_examples=400, deadline=None)
def test_it_takes_json_and_nothing_else(text: str, size: int) -> None:
    found = scanned(text, size)
    assert (found is not None) == accepted(text)
    assert found is None or json.loads(found) == json.loads(text)


@pytest.mark.parametrize(("text", "written"), [('"a\nb\x01"', '"a\\nb\\u0001"'), ('{"a":\t"\t"}', '{"a":\t"\\t"}')])
def test_control_characters_in_strings_are_escaped(text: str, written: str) -> None:
    assert scanned(text, 1) == scanned(text, 99) == written


def test_a_limit_ends_at_the_same_character_however_the_text_comes() -> None:
    for size in (1, 7, 99):
        scanner = JsonScanner(most=10)
        taken = 0
        for start in range(0, 40, size):
            if scanner.broken:
                break
            end, _ = scanner.push(('"' + "x" * 39)[start : start + size], 0)
            taken += end
        assert (taken, scanner.broken) == (10, True)
