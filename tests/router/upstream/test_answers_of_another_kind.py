"""Answers whose status says that all is well, and whose bodies do not: none of them reaches a client as a good answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headway.router.request.decoding import chunks_of, events
from headway.router.upstream.errors import UpstreamError
from tests.router.upstream.harness import Sender, document, model, run
from tests.router.upstream.routed import routed_document, send
from tests.router.upstream.scripted_backend import DONE, WHOLE, Script, ScriptedBackend, answers, chunk, streams

ERROR_EVENT = b'data: {"error": {"message": "out of memory", "code": 500}}\n\n'


def asked(script: Script, **fields: Any) -> tuple[Any, list[dict[str, Any]], list[str], ScriptedBackend]:
    """Reply, its chunks, the attempts, and the backend; `fields` go into the request."""
    found: list[Any] = []

    async def work() -> None:
        async with ScriptedBackend([script]) as backend:
            sender = Sender(document([model("m", backend.endpoint)]))
            context = sender.context({"model": "m", "messages": [{"role": "user", "content": "x"}], **fields})
            try:
                reply = await sender.upstreams.send(context)
                chunks = [each async for each in chunks_of(reply)] if reply.streams else []
                found.extend((reply, chunks, context.attempts, backend))
            finally:
                await sender.close()

    run(work)
    return tuple(found)  # type: ignore[return-value]


@pytest.mark.parametrize("body", [[], None, "x", {}, {"choices": []}, {"choices": None}, {"choices": ["x"]}, {"choices": [{"index": 0}]}])
def test_a_whole_answer_that_is_no_chat_completion_is_a_failure(body: Any) -> None:
    with pytest.raises(UpstreamError, match="another kind"):
        asked(answers(body))


def test_an_error_under_a_good_status_is_a_failure() -> None:
    with pytest.raises(UpstreamError, match="out of memory"):
        asked(answers({"error": {"message": "out of memory", "code": 500}}))


@pytest.mark.parametrize("status", [600, 999])
def test_a_status_that_http_does_not_have_is_a_failure(status: int) -> None:
    with pytest.raises(UpstreamError, match="no HTTP answer"):
        asked(answers(WHOLE, status))


def test_an_error_in_a_stream_ends_it_with_that_error() -> None:
    with pytest.raises(UpstreamError, match="out of memory"):
        asked(streams(chunk("a"), ERROR_EVENT, DONE), stream=True)


@pytest.mark.parametrize("event", [b"[]", b"null", b'{"choices": "abc"}', b'{"choices": [5]}', b'{"choices": [{"delta": 5}]}'])
def test_an_event_that_is_no_chunk_ends_the_stream_with_an_error(event: bytes) -> None:
    with pytest.raises(UpstreamError):
        asked(streams(chunk("a"), b"data: " + event + b"\n\n", chunk("b", "stop"), DONE), stream=True)


def test_a_stream_that_only_ends_is_a_failure() -> None:
    with pytest.raises(UpstreamError, match="nothing is said"):
        asked(streams(DONE), stream=True)


@pytest.mark.parametrize("pieces", [(ERROR_EVENT, DONE), (DONE,), (b"data: {oops\n\n",), (b"data: ", b'{"choices": 5}', b"\n\n")])
def test_another_model_answers_when_a_stream_is_bad_from_its_first_event(pieces: tuple[bytes, ...]) -> None:
    async def work() -> None:
        async with ScriptedBackend([streams(*pieces)]) as bad, ScriptedBackend([streams(chunk("good", "stop"), DONE)]) as good:
            models, refs = [model("m", bad.endpoint), model("n", good.endpoint)], [{"model": "m"}, {"model": "n"}]
            sender = Sender(routed_document(models, {"modelRefs": refs}, {"fallback": {"enabled": True}}))
            body = {"model": "vllm-sr/auto", "messages": [{"role": "user", "content": "x"}], "stream": True}
            reply, context = await send(sender, "m", "n", body=body)
            assert [each["choices"][0]["delta"]["content"] async for each in chunks_of(reply)] == ["good"]
            assert context.selection is not None
            assert context.selection.model == "n"
            await sender.close()

    run(work)


def test_nothing_after_the_final_event_is_passed_on_or_waited_for() -> None:
    for script in (streams(chunk("a", "stop"), DONE, chunk("b"), DONE), streams(chunk("a", "stop"), DONE, stall=True)):
        _, chunks, _, _ = asked(script, stream=True)
        assert [each["choices"][0]["delta"]["content"] for each in chunks] == ["a"]


def test_an_answer_in_one_piece_becomes_the_stream_that_was_asked_for() -> None:
    reply, chunks, _, _ = asked(answers(WHOLE), stream=True, stream_options={"include_usage": True})
    assert reply.content_type.startswith("text/event-stream")
    assert "".join(each["choices"][0]["delta"].get("content") or "" for each in chunks if each["choices"]) == "hello"
    assert chunks[-1]["usage"] == WHOLE["usage"]


def test_a_stream_nobody_asked_for_becomes_an_answer_in_one_piece() -> None:
    reply, chunks, _, _ = asked(streams(chunk("a"), chunk("b", "stop"), DONE))
    assert not chunks
    assert reply.body["choices"] == [{"index": 0, "message": {"role": "assistant", "content": "ab"}, "logprobs": None, "finish_reason": "stop"}]
    with pytest.raises(UpstreamError):
        asked(streams(chunk("a"), break_off=True))


def test_the_name_of_a_content_type_is_read_in_any_case() -> None:
    raw = chunk("a", "stop") + DONE
    reply, _, _, _ = asked(answers(raw, content_type="Text/Event-Stream; charset=utf-8"), stream=True)
    assert reply.streams


def test_lines_of_events_may_end_with_a_carriage_return_cut_anywhere() -> None:
    async def pieces(raw: bytes, size: int) -> Any:
        for at in range(0, len(raw), size):
            yield raw[at : at + size]

    async def work() -> None:
        for end in (b"\r", b"\n", b"\r\n"):
            raw = end.join((b"data: " + json.dumps({"a": 1}).encode(), b": comment", b"", b"data: [DONE]", b"", b""))
            for size in (1, 2, 3, 7, 100):
                assert [each async for each in events(pieces(raw, size))] == [b'{"a": 1}', b"[DONE]"]

    run(work)
