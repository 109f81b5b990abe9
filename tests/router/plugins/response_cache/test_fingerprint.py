"""The identity of a request: everything that can change an answer changes it, and nothing else does."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.router.config.document.cache_plugin import ResponseCacheRevision
from headway.router.plugins.response_cache.fingerprint import IRRELEVANT_FIELDS, Fingerprint, fingerprint
from headway.router.request.context import RequestContext
from headway.router.request.deadline import Deadline
from headway.router.request.identity import Identity
from headway.router.selection.result import Selection
from tests.router.plugins.rig import chat

leaves = st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8)
values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3), max_leaves=6)
texts = st.text(st.characters(codec="utf-8"), max_size=12)
messages = st.lists(st.fixed_dictionaries({"role": st.sampled_from(["system", "user", "assistant"]), "content": texts}), min_size=1, max_size=4)
fields = st.dictionaries(st.sampled_from(["temperature", "top_p", "n", "seed", "stop", "tools", "response_format", "max_tokens", "unknown"]), values, max_size=4)
bodies = st.builds(lambda said, more: {"model": "m", "messages": said, **more}, messages, fields)


def of(body: dict[str, Any], scope: str = "s", policy: str = "p", revision: ResponseCacheRevision | None = None, **context: Any) -> Fingerprint:
    made = RequestContext(None, body, {}, Identity(), Deadline.after(9), "r", **context)  # type: ignore[arg-type]
    made.selection = Selection("m", "static", "t")
    return fingerprint(made, scope, policy, revision or ResponseCacheRevision())


@given(bodies)
def test_the_order_of_keys_changes_nothing(body: dict[str, Any]) -> None:
    assert of(body) == of(dict(reversed(list(body.items()))))


@given(bodies, st.sampled_from(sorted(IRRELEVANT_FIELDS - {"stream"})), values)
def test_fields_that_cannot_change_an_answer_change_nothing(body: dict[str, Any], name: str, value: Any) -> None:
    assert of(body) == of({**body, name: value})


@given(bodies, st.text(min_size=1, max_size=10).filter(lambda name: name not in IRRELEVANT_FIELDS | {"messages"}), values)
def test_every_other_field_changes_the_partition(body: dict[str, Any], name: str, value: Any) -> None:
    without = {key: kept for key, kept in body.items() if key != name}
    assert of(without).partition != of({**without, name: value}).partition


@settings(max_examples=200)
@given(bodies, st.data())
def test_every_change_of_a_message_changes_the_whole_identity(body: dict[str, Any], data: st.DataObject) -> None:
    at = data.draw(st.integers(0, len(body["messages"]) - 1))
    part = data.draw(st.sampled_from(["role", "content", "name"]))
    value = data.draw(texts)
    if body["messages"][at].get(part) == value:
        return
    changed = copy.deepcopy(body)
    changed["messages"][at][part] = value
    assert of(body).exact != of(changed).exact
    if at < len(body["messages"]) - 1:
        assert of(body).partition != of(changed).partition


def test_the_text_of_the_latest_turn_is_the_query_and_not_part_of_the_partition() -> None:
    one, other = of(chat("a")), of(chat("b"))
    assert (one.partition, one.query, other.query) == (other.partition, "a", "b")
    assert one.exact != other.exact


def test_images_beside_the_same_text_are_another_partition() -> None:
    def with_image(url: str) -> dict[str, Any]:
        return {"model": "m", "messages": [{"role": "user", "content": [{"type": "text", "text": "t"}, {"type": "image_url", "image_url": {"url": url}}]}]}

    assert of(with_image("data:a")).partition != of(with_image("data:b")).partition
    assert of(with_image("data:a")).query == "t"


@pytest.mark.parametrize(
    "changes",
    [
        {"scope": "other"},
        {"policy": "other"},
        {"protocol": "anthropic"},
        {"revision": ResponseCacheRevision(cache_epoch="2")},
        {"revision": ResponseCacheRevision(model_revision="2")},
        {"revision": ResponseCacheRevision(prompt_revision="2")},
        {"revision": ResponseCacheRevision(policy_revision="2")},
    ],
)
def test_what_is_not_in_the_body_counts_too(changes: dict[str, Any]) -> None:
    assert of(chat("a")).partition != of(chat("a"), **changes).partition


def test_the_chosen_model_and_its_reasoning_count() -> None:
    made = []
    for selection in (Selection("m", "x", "y"), Selection("n", "x", "y"), Selection("m", "x", "y", use_reasoning=True), Selection("m", "x", "y", lora="l")):
        context = RequestContext(None, chat("a"), {}, Identity(), Deadline.after(9), "r")  # type: ignore[arg-type]
        context.selection = selection
        made.append(fingerprint(context, "s", "p", ResponseCacheRevision()).partition)
    assert len(set(made)) == 4
