"""The name of the model exchanged in bodies that are not read anew."""

from __future__ import annotations

import json
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.errors import RequestError
from headway.router.native.raw_model import with_model

NAMES = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | NAMES | st.just("model"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES | st.just("model"), inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(NAMES, VALUES, max_size=4), st.none() | NAMES, NAMES, st.booleans(), st.sampled_from([None, 2]))
def test_only_the_model_of_the_object_itself_changes(body: dict[str, Any], before: str | None, name: str, ascii_only: bool, indent: int | None) -> None:
    body.pop("model", None)
    given_body = body if before is None else {**body, "model": before}
    raw = json.dumps(given_body, ensure_ascii=ascii_only, indent=indent).encode()
    changed = with_model(raw, name)
    assert json.loads(changed) == {**body, "model": name}
    without_name = changed.replace(json.dumps(name, ensure_ascii=False).encode(), b"")
    assert len(without_name) <= len(raw) + len(b'"model":,')  # nothing else was written anew


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b'{"model":"a","x":{"model":"b"}}', {"model": "n", "x": {"model": "b"}}),
        (b'{"mod\\u0065l":"a"}', {"model": "n"}),
        (b'{"x":"\\"model\\":\\"a\\"","model" : "a"}', {"x": '"model":"a"', "model": "n"}),
        (b' { } ', {"model": "n"}),
        (b'{"x":"}{\\\\","model":"a"}', {"x": "}{\\", "model": "n"}),
    ],
)
def test_spellings(raw: bytes, expected: Any) -> None:
    assert json.loads(with_model(raw, "n")) == expected


def test_a_model_that_is_there_twice_is_exchanged_twice() -> None:
    assert with_model(b'{"model":"a","model":"b"}', "n") == b'{"model":"n","model":"n"}'


@pytest.mark.parametrize("raw", [b'{"model": 3}', b'{"model": {"a": 1}}', b'{"model": null}', b"[1]"])
def test_what_is_no_name_is_refused(raw: bytes) -> None:
    with pytest.raises(RequestError):
        with_model(raw, "n")


def test_bodies_of_very_many_strings_are_written_anew() -> None:
    """One by one they would keep the event loop for a second; a change of case in the key shows which way was taken."""
    many = {"m\\u006fdel": "a", "x": ["s"] * 60_000, "model": "b"}
    raw = orjson.dumps(many).replace(b"\\\\u", b"\\u")
    found = with_model(raw, "served")
    assert found.count(b"del") == 1
    assert orjson.loads(found) == {"model": "served", "x": ["s"] * 60_000}
    with pytest.raises(RequestError):
        with_model(orjson.dumps({"model": 5, "x": ["s"] * 60_000}), "served")
