"""Tool calls whose pieces alternate: each lands in its own block, in Anthropic's events and in those of Responses, read by their official clients."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import headway.router.protocols.part_order as part_order
from headway.router.protocols.part_order import PartOrder
from headway.router.upstream.errors import UpstreamError
from headway.wire.answer_delta import CallPart, Delta
from tests.router.listener.live_front import LiveFront, events, run
from tests.router.protocols.test_messages import TOOL, USER, delta
from tests.router.upstream.scripted_backend import DONE, ScriptedBackend, streams

ARGUMENTS = [{"city": "Ulm", "days": 3}, {"city": "Bonn"}, {}, {"city": "a \"b\" } c"}]


def calls(*pieces: tuple[int, str]) -> list[bytes]:
    """Chunks with these pieces of arguments; the first one of each call has its id and name."""
    seen: set[int] = set()
    found = []
    for index, text in pieces:
        head = {} if index in seen else {"id": f"t{index}", "type": "function"}
        function = {"arguments": text} if index in seen else {"name": f"f{index}", "arguments": text}
        seen.add(index)
        found.append(delta(tool_calls=[{"index": index, **head, "function": function}]))
    return found


def alternating(size: int = 3) -> list[tuple[int, str]]:
    written = [json.dumps(each) for each in ARGUMENTS]
    cut = [[(at, text[start : start + size]) for start in range(0, len(text), size)] for at, text in enumerate(written)]
    rounds = itertools.zip_longest(*cut)
    return [(at, "") for at in range(len(written))] + [piece for each in rounds for piece in each if piece is not None]


SCRIPT = streams(delta(content="let me see"), *calls(*alternating()), delta(content=" done"), delta("tool_calls"), DONE)


def test_messages(tmp_path: Path) -> None:
    async def work() -> None:
        async with ScriptedBackend([SCRIPT]) as backend, LiveFront(backend, tmp_path) as front:
            async with front.anthropic().messages.stream(model="m", max_tokens=9, messages=USER, tools=[TOOL]) as stream:  # type: ignore[list-item]
                found = await stream.get_final_message()
            uses = [block for block in found.content if block.type == "tool_use"]
            assert [(use.id, use.name, use.input) for use in uses] == [(f"t{at}", f"f{at}", each) for at, each in enumerate(ARGUMENTS)]
            assert [block.text for block in found.content if block.type == "text"] == ["let me see", " done"]
            assert found.stop_reason == "tool_use"
            body = {"model": "m", "max_tokens": 9, "messages": USER, "tools": [TOOL], "stream": True}
            raw = events((await front.http.post("/v1/messages", json=body)).text)
            assert _open_at_most_one(raw)

    run(work)


def _open_at_most_one(raw: list[Any]) -> bool:
    """Blocks open, get their deltas and close, one after the other."""
    at: int | None = None
    for event in raw:
        if event["type"] == "content_block_start":
            assert at is None
            at = event["index"]
        elif event["type"] == "content_block_delta":
            assert at == event["index"]
        elif event["type"] == "content_block_stop":
            assert at == event["index"]
            at = None
    return at is None


def test_responses(tmp_path: Path) -> None:
    async def work() -> None:
        async with ScriptedBackend([SCRIPT]) as backend, LiveFront(backend, tmp_path) as front:
            async with front.openai().responses.stream(model="m", input="hi") as stream:
                deltas = [event async for event in stream if event.type == "response.function_call_arguments.delta"]
                found = await stream.get_final_response()
            items = [item for item in found.output if item.type == "function_call"]
            assert [(item.call_id, item.name, json.loads(item.arguments)) for item in items] == [(f"t{at}", f"f{at}", each) for at, each in enumerate(ARGUMENTS)]
            by_item = {name: "".join(event.delta for event in group) for name, group in itertools.groupby(deltas, key=lambda event: event.item_id)}
            assert [json.loads(by_item[item.id or ""]) for item in items] == ARGUMENTS

    run(work)


def test_the_first_call_passes_as_it_comes_and_usual_order_is_never_held() -> None:
    order = PartOrder()

    def said(index: int, text: str) -> list[tuple[int, str]]:
        return [(call.index, call.arguments) for part in order.take(Delta(calls=(CallPart(index, "", "", text),))) for call in part.calls]

    assert said(0, '{"a": ') == [(0, '{"a": ')]
    assert said(1, '{"b"') == []
    assert said(0, "1}") == [(0, "1}"), (1, '{"b"')]
    assert said(1, ": 2}") == [(1, ": 2}")]
    assert said(2, "{") == [(2, "{")]
    assert [part.text for part in order.take(Delta(text="hm"))] == []
    assert [part.text or part.calls[0].arguments for part in order.take(Delta(calls=(CallPart(2, "", "", "}"),)))] == ["}", "hm"]
    assert order.rest() == []


@given(st.data())
def test_whatever_the_order_every_part_is_said_once_and_in_its_own_order(data: st.DataObject) -> None:
    written = {at: json.dumps({"k": "v" * data.draw(st.integers(0, 5))}) for at in range(3)}
    left = dict(written)
    order, got, switches = PartOrder(), dict.fromkeys(written, ""), []
    while any(left.values()):
        at = data.draw(st.sampled_from([each for each in left if left[each]]))
        size = data.draw(st.integers(1, 6))
        piece, left[at] = left[at][:size], left[at][size:]
        for part in order.take(Delta(calls=(CallPart(at, "", "", piece),))):
            got[part.calls[0].index] += part.calls[0].arguments
            switches.append(part.calls[0].index)
    for part in order.rest():
        got[part.calls[0].index] += part.calls[0].arguments
        switches.append(part.calls[0].index)
    assert got == written
    assert len([index for index, _ in itertools.groupby(switches)]) == 3  # no call is left and come back to


def test_what_is_held_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_order, "MOST_HELD", 10)
    order = PartOrder()
    order.take(Delta(calls=(CallPart(0, "", "f", "{"),)))
    order.take(Delta(calls=(CallPart(1, "", "", "123456789"),)))
    with pytest.raises(UpstreamError):
        order.take(Delta(calls=(CallPart(1, "", "", "12"),)))
