"""What a stream and its client do to each other, without sockets."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

import pytest

from headway.errors import HeadwayError, RequestError, StepError
from headway.http.client_watch import ClientLeft, ClientWatch
from headway.server.event_stream import open_stream


class Wire:
    """The two ends of an ASGI connection."""

    def __init__(self) -> None:
        self.gone = asyncio.Event()
        self.sent: list[dict[str, Any]] = []
        self.closing: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def receive(self) -> dict[str, Any]:
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        self.sent.append(dict(message))

    @property
    def body(self) -> bytes:
        return b"".join(m.get("body", b"") for m in self.sent)

    def watch(self) -> ClientWatch:
        return ClientWatch(self.receive, self.closing)


class Source:
    """Frames on demand; tells whether it was closed."""

    def __init__(self, *items: bytes | Exception):
        self.items = list(items)
        self.more = asyncio.Event()
        self.closed = False

    async def frames(self) -> AsyncGenerator[bytes, None]:
        try:
            for item in self.items:
                if isinstance(item, Exception):
                    raise item
                yield item
            await self.more.wait()
        finally:
            self.closed = True


def test_frames_then_done() -> None:
    async def run() -> None:
        wire, source = Wire(), Source(b"a", b"b")
        source.more.set()
        await (await open_stream(source.frames(), wire.watch()))({}, wire.receive, wire.send)
        assert wire.body == b"abdata: [DONE]\n\n"
        assert [m.get("more_body") for m in wire.sent] == [None, True, True, False]
        headers = dict(wire.sent[0]["headers"])
        assert headers[b"content-type"].startswith(b"text/event-stream")
        assert b"content-length" not in headers
        assert source.closed

    asyncio.run(run())


def test_an_error_before_the_first_frame_is_raised() -> None:
    async def run() -> None:
        wire, source = Wire(), Source(RequestError("no"))
        with pytest.raises(RequestError):
            await open_stream(source.frames(), wire.watch())
        assert source.closed

    asyncio.run(run())


@pytest.mark.parametrize(("failure", "reason"), [(StepError("broke"), b"step_failed"), (ValueError("secret"), b"internal_error")])
def test_an_error_later_is_a_frame_and_done_follows(failure: Exception, reason: bytes) -> None:
    async def run() -> None:
        wire = Wire()
        await (await open_stream(Source(b"a", failure).frames(), wire.watch()))({}, wire.receive, wire.send)
        assert reason in wire.body
        assert b"secret" not in wire.body
        assert wire.body.endswith(b"data: [DONE]\n\n")

    asyncio.run(run())


def test_a_client_that_leaves_closes_the_source() -> None:
    async def run() -> None:
        wire, source = Wire(), Source(b"a")
        response = await open_stream(source.frames(), wire.watch())
        serving = asyncio.create_task(response({}, wire.receive, wire.send))
        await asyncio.sleep(0)
        wire.gone.set()
        await serving
        assert source.closed
        assert b"[DONE]" not in wire.body
        assert len(asyncio.all_tasks()) == 1  # nothing is left behind

    asyncio.run(run())


def test_a_client_that_leaves_before_the_first_frame() -> None:
    async def run() -> None:
        wire, source = Wire(), Source()
        watch = wire.watch()
        opening = asyncio.create_task(open_stream(source.frames(), watch))
        await asyncio.sleep(0)
        wire.gone.set()
        with pytest.raises(ClientLeft):
            await opening
        watch.close()
        assert source.closed

    asyncio.run(run())


def test_a_server_that_closes_says_so() -> None:
    async def run() -> None:
        wire, source = Wire(), Source(b"a")
        response = await open_stream(source.frames(), wire.watch())
        serving = asyncio.create_task(response({}, wire.receive, wire.send))
        await asyncio.sleep(0.01)
        wire.closing.set_result(None)
        await serving
        assert b"shutting_down" in wire.body
        assert wire.body.endswith(b"data: [DONE]\n\n")
        assert source.closed

    asyncio.run(run())


def test_work_for_a_client_that_leaves_is_cancelled_and_has_ended() -> None:
    async def run() -> None:
        wire, ended = Wire(), asyncio.Event()

        async def work() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                ended.set()

        watch = wire.watch()
        running = asyncio.create_task(watch.run(work()))
        await asyncio.sleep(0)
        wire.gone.set()
        with pytest.raises(ClientLeft):
            await running
        assert ended.is_set()
        watch.close()

    asyncio.run(run())


def test_work_that_is_done_wins() -> None:
    async def run() -> None:
        wire = Wire()
        wire.gone.set()
        watch = wire.watch()

        async def work() -> int:
            return 7

        assert await watch.run(work()) == 7
        watch.close()
        wire.closing.set_result(None)

        async def waits() -> None:
            await asyncio.Event().wait()

        still = ClientWatch(Wire().receive, wire.closing)
        with pytest.raises(HeadwayError, match="shutting down"):
            await still.run(waits())
        still.close()

    asyncio.run(run())
