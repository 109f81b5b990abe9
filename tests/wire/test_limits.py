"""Nesting is measured on bytes, before anything is built from them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import RequestError
from headway.wire.limits import BodyLimits, check_depth, nesting_depth

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='{}[]"\\ab\n🙂'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet='{}[]"\\ab'), inner, max_size=3),
)


def depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max((depth(v) for v in value.values()), default=0)
    return 1 + max((depth(v) for v in value), default=0) if isinstance(value, list) else 0


@given(JSON, st.booleans())
def test_depth_equals_that_of_the_parsed_value(value: Any, ascii_only: bool) -> None:
    raw = json.dumps(value, ensure_ascii=ascii_only).encode()
    assert nesting_depth(raw) == depth(value)


def test_the_limit_itself_is_allowed_and_one_more_is_not() -> None:
    limits = BodyLimits(max_depth=5)
    check_depth(b"[" * 5 + b"]" * 5, limits)
    with pytest.raises(RequestError) as found:
        check_depth(b"[" * 6 + b"]" * 6, limits)
    assert found.value.reason == "body_too_deep"


def test_many_brackets_side_by_side_are_shallow() -> None:
    check_depth(b"[" + b"[],{}," * 5000 + b"1]", BodyLimits(max_depth=3))


@pytest.mark.parametrize("entry", [b"[],", b'{"a":{}},', b'"",'])
def test_more_values_than_can_be_parsed_in_time_are_refused(entry: bytes) -> None:
    with pytest.raises(RequestError, match="the most is") as found:
        check_depth(b"[" + entry * 2_000_001 + b"1]", BodyLimits())
    assert found.value.reason == "body_too_large"


def test_brackets_in_texts_are_no_values() -> None:
    check_depth(b'[["' + b"[{" * 300_000 + b'"]]', BodyLimits(max_depth=2))


@given(st.binary())
def test_any_bytes_are_measured(raw: bytes) -> None:
    assert nesting_depth(raw) >= 0
