"""Signals that read the shape of a request: context, conversation, input_modality, metadata, authz."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.router.config.document.text_signals import token_count
from headway.router.request.identity import Identity
from headway.router.request.view import RequestView
from headway.router.signals.context import estimated_tokens
from headway.router.signals.conversation import in_tool_loop
from headway.router.truth import Truth
from tests.router.routed import route, signals_of


def holding(collection: str, type: str, rules: list[dict[str, Any]], request: Any, identity: Identity | None = None) -> set[str]:
    found = route(signals_of(collection, type, rules), request, identity)
    return {each.name for each in found.observations if each.truth is Truth.TRUE}


# context


@settings(deadline=None)
@given(st.text(max_size=60), st.text(max_size=60))
def test_tokens_are_a_quarter_of_the_bytes(system: str, user: str) -> None:
    view = RequestView({"messages": [{"role": "system", "content": system}, {"role": "user", "content": user}]})
    assert estimated_tokens(view) == math.ceil((len(system.encode()) + len(user.encode())) / 4)


@pytest.mark.parametrize(("text", "count"), [("8001", 8001), ("32K", 32_000), ("1.5M", 1_500_000), (" 2k ", 2000), ("0", 0)])
def test_token_counts(text: str, count: int) -> None:
    assert token_count(text) == count


@pytest.mark.parametrize("text", ["", "K", "1.5.2", "-1", "1G", "nan", "1e3", "٣", f"{10**19}"])
def test_what_is_no_token_count(text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the message is the text itself
        token_count(text)


@pytest.mark.parametrize(("bytes", "wanted"), [(4 * 99, set()), (4 * 100, {"band"}), (4 * 200, {"band", "exact"}), (4 * 200 + 1, {"open"}), (4 * 5000, {"open"})])
def test_both_ends_of_a_band_belong_to_it(bytes: int, wanted: set[str]) -> None:
    rules = [{"name": "band", "min_tokens": "100", "max_tokens": "0.2K"}, {"name": "exact", "min_tokens": 200, "max_tokens": 200}, {"name": "open", "min_tokens": "201"}]
    assert holding("context", "context", rules, "x" * bytes) == wanted


# conversation

CALL = {"role": "assistant", "tool_calls": [{"id": "1"}, {"id": "2"}]}
RESULT = {"role": "tool", "content": "42"}
USER, TOLD, SYSTEM = ({"role": role, "content": "x"} for role in ("user", "assistant", "system"))


def count(source: dict[str, Any], **predicate: float) -> dict[str, Any]:
    return {"name": "n", "feature": {"type": "count", "source": source}, "predicate": predicate or {"gte": 1}}


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ({"type": "message"}, 7),
        ({"type": "message", "role": "user"}, 2),
        ({"type": "message", "role": "non_user"}, 5),
        ({"type": "message", "role": "developer"}, 0),
        ({"type": "tool_definition"}, 1),
        ({"type": "assistant_tool_call"}, 2),
        ({"type": "assistant_tool_cycle"}, 2),
        ({"type": "active_tool_loop"}, 1),
        ({"type": "image_content"}, 1),
    ],
)
def test_what_is_counted(source: dict[str, Any], value: int) -> None:
    image = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}, {"type": "text", "text": "?"}]}
    body = {"messages": [SYSTEM, USER, CALL, RESULT, RESULT, TOLD | {"tool_calls": None}, image], "tools": [{"type": "function"}]}
    if source["type"] == "active_tool_loop":
        body["messages"] = body["messages"][:5]
    found = route(signals_of("conversation", "conversation", [count(source)]), body)["conversation:n"]
    assert found.value == value
    assert found.truth is Truth.of(value >= 1)


@pytest.mark.parametrize(
    ("messages", "loop"),
    [
        ([], False),
        ([USER], False),
        ([USER, CALL, RESULT], True),
        ([USER, CALL, RESULT, RESULT, USER], True),
        ([USER, CALL, RESULT, RESULT, TOLD, USER], False),
        ([USER, CALL, RESULT, TOLD, USER], True),  # a call is open
        ([USER, TOLD, USER], False),
    ],
)
def test_tool_loops(messages: list[dict[str, Any]], loop: bool) -> None:
    assert in_tool_loop(RequestView({"messages": messages})) is loop


def test_exists_is_one_or_zero() -> None:
    rule = {"name": "n", "feature": {"type": "exists", "source": {"type": "message", "role": "user"}}}
    assert route(signals_of("conversation", "conversation", [rule]), {"messages": [USER, USER]})["conversation:n"].value == 1.0
    assert route(signals_of("conversation", "conversation", [rule]), {"messages": [SYSTEM]})["conversation:n"].value == 0.0


# input_modality

KINDS = [{"name": kind, "modality": kind} for kind in ("text", "image", "audio", "video")]


@pytest.mark.parametrize(
    ("content", "wanted"),
    [
        ("hello", {"text"}),
        ("", set()),
        ([{"type": "text", "text": "hi"}, {"type": "image_url", "image_url": {"url": "x"}}], {"text", "image"}),
        ([{"type": "input_audio", "input_audio": {}}], {"audio"}),
        ([{"type": "video_url", "video_url": {}}, {"type": "text", "text": ""}], {"video"}),
        ([{"type": "file"}, 7, None], set()),
        (None, set()),
    ],
)
def test_modalities_of_user_turns(content: Any, wanted: set[str]) -> None:
    assert holding("input_modality", "input_modality", KINDS, {"messages": [{"role": "user", "content": content}]}) == wanted


def test_only_users_count() -> None:
    assert holding("input_modality", "input_modality", KINDS, {"messages": [SYSTEM, TOLD]}) == set()


# metadata

METADATA = [
    {"name": "equal", "key": "tier", "predicate": {"equals": "gold"}},
    {"name": "member", "key": "tier", "predicate": {"in": ["gold", "silver"]}},
    {"name": "there", "key": "tier", "predicate": {"exists": True}},
    {"name": "gone", "key": "tier", "predicate": {"exists": False}},
]


@pytest.mark.parametrize(
    ("metadata", "wanted"),
    [
        ({"tier": "gold"}, {"equal", "member", "there"}),
        ({"tier": "silver"}, {"member", "there"}),
        ({"tier": ""}, {"there"}),
        ({"tier": 7}, {"gone"}),
        ({}, {"gone"}),
        (None, {"gone"}),
        (["gold"], {"gone"}),
    ],
)
def test_metadata(metadata: Any, wanted: set[str]) -> None:
    assert holding("metadata", "metadata", METADATA, {"messages": [USER], "metadata": metadata}) == wanted


# authz

ROLES = [
    {"name": "admins", "role": "admin", "subjects": [{"kind": "User", "name": "ann"}]},
    {"name": "ops", "role": "admin", "subjects": [{"kind": "Group", "name": "sre"}]},
    {"name": "paid", "role": "premium", "subjects": [{"kind": "Group", "name": "gold"}, {"kind": "Group", "name": "sre"}]},
]


@pytest.mark.parametrize(
    ("identity", "wanted"),
    [
        (Identity(), set()),
        (Identity(user="ann"), {"admins", "admin"}),
        (Identity(user="bob", groups=("sre",)), {"ops", "admin", "paid", "premium"}),
        (Identity(user="sre", groups=("ann",)), set()),
        (Identity(key="ann", team="sre", tenant="gold"), set()),
    ],
)
def test_roles(identity: Identity, wanted: set[str]) -> None:
    assert holding("role_bindings", "authz", ROLES, "hi", identity) == wanted
