"""Follower: keeps the index of one backend in step with the events that it publishes, on a thread of its own.

Batches are numbered without holes. What is missed is asked for again where the backend has an address for that; where it has none, or does
not have the batches any more, the index is forgotten and built anew from what comes: it may know too little, never something wrong for long.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

import zmq
from zmq.utils.monitor import parse_monitor_message

from headway.router.metrics.registry import RouterMetrics
from headway.router.prefixes.cache_events import EventFormatError, read_batch
from headway.router.prefixes.prefix_index import PrefixIndex
from headway.router.prefixes.token_chain import TokenChain

_log = logging.getLogger(__name__)
_WAIT_MS = 100
_LARGEST_BATCH = 64 * 1024 * 1024
_MOST_WAITING = 100_000  # batches
_HEARTBEAT_MS, _SILENCE_MS = 5_000, 15_000  # a publisher that is cut off is noticed so soon
_REPLAY_SECONDS = 5.0  # of silence, while a replay is expected
_END = (-1).to_bytes(8, "big", signed=True)
_CONNECTIONS = zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_DISCONNECTED
_NOTHING = -1


@dataclass(frozen=True, slots=True)
class EventSource:
    """Where a backend publishes, and where it sends batches again (None: nowhere)."""

    endpoint: str
    replay: str | None = None
    topic: str = ""


class _NoReplayError(Exception):
    """Nobody sent the batches again."""


class Follower:
    """`names` are the model and the backend in metrics. `stale_seconds` is how long the index is believed without a connection."""

    def __init__(self, source: EventSource, names: tuple[str, str], most_blocks: int, stale_seconds: float, metrics: RouterMetrics):
        self.index = PrefixIndex(most_blocks)
        self._source = source
        self._names = names
        self._stale = stale_seconds
        self._metrics = metrics
        self._last = _NOTHING  # the number of the batch that was applied last
        self._live = _NOTHING  # of the one that came last by itself since the connection stands
        self._last_payload = b""
        self._lost_at: float | None = time.monotonic()  # since when there is no connection
        self._complained = False
        self._closed = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def connected(self) -> bool:
        return self._lost_at is None

    def start(self) -> None:
        """Begin to follow. Idempotent."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="kv-events-follower", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """The thread ends soon; nothing is held from now on."""
        self._closed.set()

    def join(self, seconds: float) -> None:
        if self._thread is not None:
            self._thread.join(seconds)

    def held(self, chain: TokenChain) -> int:
        """Tokens at the beginning of the prompt that the backend holds, as far as it is known."""
        return 0 if self._closed.is_set() else self.index.held(chain)

    # ---- the thread ------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        try:
            with closing(context.socket(zmq.SUB)) as events:
                monitor = events.get_monitor_socket(_CONNECTIONS)
                self._subscribe(events)
                while not self._closed.is_set():
                    came = events.poll(_WAIT_MS)
                    while monitor.poll(0):  # before the message, which may be of a new connection
                        self._on_connection(context, int(parse_monitor_message(monitor.recv_multipart())["event"]))
                    if came:
                        self._on_message(context, events.recv_multipart())
                    self._age()
                    self._metrics.set("headway_prefix_index_blocks", len(self.index), *self._names)
                events.disable_monitor()
        except zmq.ZMQError as error:
            _log.warning("KV events of backend %s are not followed: %s", self._names[1], error.strerror)
        finally:
            self.index.clear()
            self._metrics.forget("headway_prefix_index_blocks", *self._names)
            context.destroy(linger=0)

    def _subscribe(self, events: zmq.Socket[bytes]) -> None:
        for option, value in (
            (zmq.LINGER, 0), (zmq.RCVHWM, _MOST_WAITING), (zmq.MAXMSGSIZE, _LARGEST_BATCH), (zmq.HEARTBEAT_IVL, _HEARTBEAT_MS),
            (zmq.HEARTBEAT_TIMEOUT, _SILENCE_MS), (zmq.RECONNECT_IVL, 100), (zmq.RECONNECT_IVL_MAX, 5_000), (zmq.IPV6, int("[" in self._source.endpoint)),
        ):  # fmt: skip
            events.setsockopt(option, value)
        events.setsockopt(zmq.SUBSCRIBE, self._source.topic.encode())
        events.connect(self._source.endpoint)

    def _on_connection(self, context: zmq.Context[zmq.Socket[bytes]], event: int) -> None:
        if event == zmq.EVENT_DISCONNECTED:
            self._lost_at = time.monotonic()
            return
        self._lost_at, self._live = None, _NOTHING
        if self._last != _NOTHING and not self._same_publisher(context):
            self._forget("restarted")
        if self._last == _NOTHING:
            self._catch_up(context, 0)

    def _same_publisher(self, context: zmq.Context[zmq.Socket[bytes]]) -> bool:
        """Whether the batch that was applied last is still what the publisher has under its number; an engine that began anew has another."""
        try:
            return next(self._replay(context, self._last), None) == (self._last, self._last_payload)
        except _NoReplayError:
            return False

    def _on_message(self, context: zmq.Context[zmq.Socket[bytes]], frames: list[bytes]) -> None:
        if len(frames) != 3 or len(frames[1]) != 8:
            self._count("malformed")
            return
        number = int.from_bytes(frames[1], "big")
        if self._last != _NOTHING and number > self._last + 1:
            self._count("gap")
            self._catch_up(context, self._last + 1)
        elif number <= self._live:
            self._forget("restarted")
            self._catch_up(context, 0)
        self._live = number
        if number <= self._last:
            return  # a replay had it
        if self._last not in (_NOTHING, number - 1):
            self._forget("lost")
        self._apply(number, frames[2])

    def _catch_up(self, context: zmq.Context[zmq.Socket[bytes]], first: int) -> None:
        """Apply what the publisher still has from batch `first` on. When it lacks the beginning, the index is built anew from the rest."""
        try:
            for number, payload in self._replay(context, first):
                if number > self._last + 1 and self._last != _NOTHING:
                    self._forget("lost")
                if number > self._last:
                    self._apply(number, payload)
                    self._count("replayed")
        except _NoReplayError:
            self._count("no_replay")

    def _replay(self, context: zmq.Context[zmq.Socket[bytes]], first: int) -> Iterator[tuple[int, bytes]]:
        """Raises _NoReplayError when there is no address for it, or no end within the time."""
        if self._source.replay is None:
            raise _NoReplayError
        with closing(context.socket(zmq.DEALER)) as asking:
            asking.setsockopt(zmq.LINGER, 0)
            asking.setsockopt(zmq.RCVHWM, 0)
            asking.setsockopt(zmq.MAXMSGSIZE, _LARGEST_BATCH)
            asking.setsockopt(zmq.IPV6, int("[" in self._source.replay))
            asking.connect(self._source.replay)
            asking.send_multipart((b"", first.to_bytes(8, "big")))
            end = time.monotonic() + _REPLAY_SECONDS
            while not self._closed.is_set():
                if not asking.poll(_WAIT_MS):
                    if time.monotonic() > end:
                        raise _NoReplayError
                    continue
                end = time.monotonic() + _REPLAY_SECONDS
                frames = asking.recv_multipart()
                if len(frames) < 3 or len(frames[-2]) != 8:
                    raise _NoReplayError
                if frames[-2] == _END:
                    return
                yield int.from_bytes(frames[-2], "big"), frames[-1]

    def _apply(self, number: int, payload: bytes) -> None:
        self._last, self._last_payload = number, payload
        try:
            events = read_batch(payload)
        except EventFormatError as error:
            self._count("malformed")
            if not self._complained:
                _log.warning("KV events of backend %s cannot be read: %s; further ones are only counted", self._names[1], error.message)
            self._complained = True
            self.index.clear()  # it may have told that blocks are gone
            return
        self.index.apply(events)
        self._count("applied")

    def _age(self) -> None:
        if self._lost_at is not None and self._last != _NOTHING and time.monotonic() - self._lost_at > self._stale:
            self._forget("stale")

    def _forget(self, why: str) -> None:
        self._count(why)
        self.index.clear()
        self._last = self._live = _NOTHING

    def _count(self, outcome: str) -> None:
        self._metrics.count("headway_prefix_event_batches", *self._names, outcome)
