"""A real HTTP server whose answers a test writes down: bytes on a socket, so that it can also misbehave."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

WHOLE = {
    "id": "c1", "object": "chat.completion", "created": 1, "model": "m",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "hello"}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7},
}  # fmt: skip


@dataclass
class Asked:
    path: str
    headers: dict[str, str]
    body: Any


Script = Callable[["Asked", asyncio.StreamWriter], Awaitable[None]]


@dataclass
class ScriptedBackend:
    """`scripts[n]` answers request number n, the last one all that follow. `gone` counts connections that the other side ended."""

    scripts: list[Script]
    asked: list[Asked] = field(default_factory=list)
    connections: int = 0
    gone: int = 0
    port: int = 0
    socket: str | None = None
    _server: asyncio.Server | None = None
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def __aenter__(self) -> ScriptedBackend:
        if self.socket is not None:
            self._server = await asyncio.start_unix_server(self._connected, self.socket)
        else:
            self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port)
            self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def endpoint(self) -> str:
        return f"unix://{self.socket}" if self.socket is not None else f"127.0.0.1:{self.port}"

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            while True:
                asked = await _request(reader)
                self.asked.append(asked)
                script = self.scripts[min(len(self.asked), len(self.scripts)) - 1]
                running = asyncio.ensure_future(script(asked, writer))
                left = asyncio.ensure_future(_until_left(reader))
                await asyncio.wait({running, left}, return_when=asyncio.FIRST_COMPLETED)
                left.cancel()
                if not running.done():
                    running.cancel()
                    self.gone += 1
                    return
                running.result()
                if writer.is_closing():
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            self.gone += 1
        except asyncio.CancelledError:
            return  # the test is over
        finally:
            self._tasks.discard(task)
            writer.close()


async def _until_left(reader: asyncio.StreamReader) -> None:
    """Ends when the peer closes. Peeks: pipelined bytes would stay, but our client sends none."""
    while not reader.at_eof():
        await asyncio.sleep(0.005)


async def _request(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    first, *lines = head.strip().split("\r\n")
    headers = {name.strip().lower(): value.strip() for name, value in (line.split(":", 1) for line in lines)}
    raw = await reader.readexactly(int(headers.get("content-length", "0")))
    return Asked(first.split(" ")[1], headers, json.loads(raw) if raw else None)


def answers(body: Any = WHOLE, status: int = 200, content_type: str = "application/json", headers: dict[str, str] | None = None) -> Script:
    async def script(asked: Asked, writer: asyncio.StreamWriter) -> None:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        extra = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
        writer.write(f"HTTP/1.1 {status} X\r\ncontent-type: {content_type}\r\ncontent-length: {len(raw)}\r\n{extra}\r\n".encode() + raw)
        await writer.drain()

    return script


def streams(*pieces: bytes, pause: float = 0.0, stall: bool = False, break_off: bool = False) -> Script:
    """Chunked events. `stall`: never end; `break_off`: close in the middle of the transfer."""

    async def script(asked: Asked, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        for piece in pieces:
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            await writer.drain()
            if pause:
                await asyncio.sleep(pause)
        if stall:
            await asyncio.sleep(3600)
        if break_off:
            writer.close()
            return
        writer.write(b"0\r\n\r\n")
        await writer.drain()

    return script


def chunk(text: str = "", finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    return b"data: " + json.dumps({"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"


async def never(asked: Asked, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(3600)


async def hangs_up(asked: Asked, writer: asyncio.StreamWriter) -> None:
    writer.close()


async def trickles(asked: Asked, writer: asyncio.StreamWriter) -> None:
    """One byte at a time, never done in time."""
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 10000\r\n\r\n")
    for _ in range(10000):
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.02)
