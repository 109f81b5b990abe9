"""Files of requests, answered by an application around a scripted engine."""

from __future__ import annotations

import asyncio
import io
import json
from typing import Any

import pytest

from headway.server.app import create_app
from headway.server.batch.lines import raw_lines
from headway.server.batch.process import URLS
from headway.server.batch.runner import BatchCount, run_batch
from headway.server.settings import ServerSettings
from headway.telemetry.metrics import EngineMetrics
from headway.wire.limits import BodyLimits
from tests.server.scripted_engine import ScriptedEngine

CHAT = {"messages": [{"role": "user", "content": "Hi"}]}
LIMITS = BodyLimits(1000, 20)


def line(name: Any = "a", url: Any = "/v1/chat/completions", body: Any = None, **more: Any) -> bytes:
    return json.dumps({"custom_id": name, "method": "POST", "url": url, "body": CHAT if body is None else body, **more}).encode() + b"\n"


def answers(*lines: bytes, engine: ScriptedEngine | None = None, at_once: int = 3, limits: BodyLimits = LIMITS) -> tuple[list[dict[str, Any]], BatchCount, list[int]]:
    """What was written, the count, and how far the reading was told to be."""
    target, told = io.BytesIO(), []
    app = create_app(engine or ScriptedEngine(), ServerSettings(max_request_bytes=limits.max_bytes), EngineMetrics("tiny"))
    count = asyncio.run(run_batch(app, io.BytesIO(b"".join(lines)), target, urls=URLS, limits=limits, at_once=at_once, tell=told.append))
    return [json.loads(each) for each in target.getvalue().splitlines()], count, told


def test_each_line_is_answered_in_its_place() -> None:
    lines = [
        line("chat"),
        line("text", "/v1/completions", {"prompt": "x", "max_tokens": 3}),
        b"\n",
        line("other", "/v1/responses", {"input": "x"}),
        line("third", "/v1/messages", {"max_tokens": 3, "messages": CHAT["messages"]}),
    ]
    found, count, told = answers(*lines)
    assert [each["custom_id"] for each in found] == ["chat", "text", "other", "third"]
    assert [each["response"]["status_code"] for each in found] == [200] * 4
    assert [each["error"] for each in found] == [None] * 4
    bodies = [each["response"]["body"] for each in found]
    assert [body.get("object", body.get("type")) for body in bodies] == ["chat.completion", "text_completion", "response", "message"]
    assert bodies[0]["choices"][0]["message"]["content"] == "Hello, world"
    assert count == BatchCount(4, 0)
    assert told[-1] == sum(len(each) for each in lines) - 1  # without the empty one
    assert len({each["id"] for each in found} | {each["response"]["request_id"] for each in found}) == 8


@pytest.mark.parametrize(
    ("bad", "status", "param", "name"),
    [
        (b"{\n", 400, None, None),
        (b"[1]\n", 400, None, None),
        (line(7), 400, "custom_id", None),
        (line(method="GET"), 400, "method", "a"),
        (line(url="/v1/models"), 400, "url", "a"),
        (line(url="http://elsewhere/v1/chat/completions"), 400, "url", "a"),
        (line(body=[1]), 400, "body", "a"),
        (line(body={**CHAT, "stream": True}), 400, "stream", "a"),
        (line(body={**CHAT, "temperature": 9}), 400, "temperature", "a"),
        (line(body={**CHAT, "model": "no"}), 404, "model", "a"),
        (line(url="/v1/messages", body={"messages": []}), 400, "messages", "a"),
        (line(body={**CHAT, "pad": "x" * 2000}), 413, None, "a"),
        (line(body={**CHAT, "pad": "x" * 80_000}), 413, None, None),
    ],
)
def test_a_bad_line_is_told_and_hurts_no_other(bad: bytes, status: int, param: str | None, name: str | None) -> None:
    found, count, _ = answers(line("before"), bad, line("after"))
    assert [each["custom_id"] for each in found] == ["before", name, "after"]
    refused = found[1]
    assert (refused["response"]["status_code"], refused["response"]["body"]) == (status, None)
    assert refused["error"]["message"]
    if param is not None:
        assert refused["error"]["param"] == param
    assert count == BatchCount(2, 1)


def test_no_more_lines_are_asked_at_once_than_told() -> None:
    engine = ScriptedEngine()
    most = 0
    generate = engine.generate

    async def watched(*args: Any, **kwargs: Any) -> Any:
        nonlocal most
        async for output in generate(*args, **kwargs):
            most = max(most, len(engine.active))
            yield output

    engine.generate = watched  # type: ignore[method-assign]
    found, _, _ = answers(*(line(str(i)) for i in range(20)), engine=engine, at_once=4)
    assert [each["custom_id"] for each in found] == [str(i) for i in range(20)]
    assert most == 4


def test_a_line_that_is_too_long_is_never_in_memory() -> None:
    class Source(io.BytesIO):
        longest = 0

        def readline(self, size: int | None = -1, /) -> bytes:
            got = super().readline(size)
            Source.longest = max(Source.longest, len(got))
            return got

    found = list(raw_lines(Source(b"x" * 5_000_000 + b"\nshort\n"), LIMITS))
    assert [each[-6:] for each in found] == [b"xxxxxx", b"short\n"]
    assert Source.longest < 70_000
