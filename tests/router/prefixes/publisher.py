"""A publisher of KV events that does what a test says: real sockets, and batches of the test's own making."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any

import zmq

from tests.router.upstream.harness import free_port

END = (-1).to_bytes(8, "big", signed=True)


@dataclass
class ScriptedPublisher:
    """`kept` is what a replay sends. `ports` may be those of an earlier one. A publisher without `replays` has no address for them."""

    replays: bool = True
    ports: tuple[int, int] = field(default_factory=lambda: (free_port(), free_port()))
    kept: dict[int, bytes] = field(default_factory=dict)
    asked: list[int] = field(default_factory=list)

    def __enter__(self) -> ScriptedPublisher:
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._events = self._context.socket(zmq.XPUB)  # tells when somebody has subscribed
        self._events.bind(self.endpoint)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._answering = self._context.socket(zmq.ROUTER)
        if self.replays:
            self._answering.bind(self.replay)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(10)
        self._context.destroy(linger=0)

    @property
    def endpoint(self) -> str:
        return f"tcp://127.0.0.1:{self.ports[0]}"

    @property
    def replay(self) -> str:
        return f"tcp://127.0.0.1:{self.ports[1]}"

    def wait_for_subscriber(self) -> None:
        assert self._events.poll(30_000), "nobody subscribed"
        assert self._events.recv()[0] == 1

    def send(self, number: int, payload: bytes, *, keep: bool = True, lose: bool = False) -> None:
        """`lose`: subscribers do not get it."""
        if keep:
            self.kept[number] = payload
        if not lose:
            self.send_frames(b"", number.to_bytes(8, "big"), payload)

    def send_frames(self, *frames: Any) -> None:
        self._events.send_multipart(frames)

    def _serve(self) -> None:
        while not self._ended.is_set():
            if not self.replays or not self._answering.poll(20):
                self._ended.wait(0.02 if not self.replays else 0)
                continue
            asker, empty, first = self._answering.recv_multipart()
            assert empty == b""
            self.asked.append(int.from_bytes(first, "big"))
            for number, payload in sorted(self.kept.items()):
                if number >= self.asked[-1]:
                    self._answering.send_multipart((asker, b"", number.to_bytes(8, "big"), payload))
            self._answering.send_multipart((asker, b"", END, b""))
