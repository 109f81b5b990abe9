"""EventPublisher: sends what the recorder holds to all subscribers, and earlier batches again to those who ask.

A message has three parts: topic, number of the batch (8 bytes, big endian, from 0), batch. A replay is asked for with ["", number] and
answered with ["", number, batch] for each batch from that one on that is still kept, and ["", -1, ""] at the end.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque

import msgspec
import zmq

from headway.engine.kv_events.recorder import EventRecorder
from headway.engine.kv_events.settings import KVEventsSettings
from headway.engine.kv_events.wire_records import EventBatch
from headway.errors import ConfigError

_log = logging.getLogger(__name__)
_WAIT_SECONDS = 0.1
_JOIN_SECONDS = 2.0
_LARGEST_REQUEST = 4096  # bytes; a request for a replay has 8
END = (-1).to_bytes(8, "big", signed=True)


class EventPublisher:
    """Two threads of its own, so that neither the cache nor a slow subscriber waits for anybody: batches that a subscriber does not take are
    dropped for it alone when `hwm` of them wait, which it sees in their numbers."""

    def __init__(self, settings: KVEventsSettings, recorder: EventRecorder, rank: int = 0):
        """Raises ConfigError when an address cannot be used."""
        self.endpoint = shifted(settings.endpoint, rank)
        self._recorder = recorder
        self._rank = rank
        self._topic = settings.topic.encode()
        self._kept: deque[tuple[int, bytes]] = deque(maxlen=settings.buffer_steps)
        self._lock = threading.Lock()  # guards _kept
        self._closed = threading.Event()
        self._context = zmq.Context()
        self._sockets: list[zmq.Socket[bytes]] = []
        self._threads: list[threading.Thread] = []
        try:
            self._open(settings)
        except ConfigError:
            self._release()
            raise
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Send what is recorded, as far as that takes no time, and end the threads. Idempotent."""
        if not self._closed.is_set():
            self._recorder.end()
            self._threads[0].join(_JOIN_SECONDS)
            self._closed.set()
            for thread in self._threads:
                thread.join(_JOIN_SECONDS)
            self._release()

    def _open(self, settings: KVEventsSettings) -> None:
        publishing = self._socket(zmq.PUB, self.endpoint, settings.binds, settings.hwm)
        self._threads.append(threading.Thread(target=self._publish, args=(publishing,), name="kv-events", daemon=True))
        if settings.replay_endpoint is not None:
            replaying = self._socket(zmq.ROUTER, shifted(settings.replay_endpoint, self._rank), True, settings.buffer_steps + 1)
            self._threads.append(threading.Thread(target=self._replay, args=(replaying,), name="kv-events-replay", daemon=True))

    def _socket(self, kind: int, address: str, binds: bool, most_waiting: int) -> zmq.Socket[bytes]:
        socket: zmq.Socket[bytes] = self._context.socket(kind)
        self._sockets.append(socket)
        socket.setsockopt(zmq.LINGER, 0)
        socket.setsockopt(zmq.SNDHWM, most_waiting)
        socket.setsockopt(zmq.IPV6, 1 if "[" in address else 0)
        socket.setsockopt(zmq.MAXMSGSIZE, _LARGEST_REQUEST)
        socket.setsockopt(zmq.RCVTIMEO, int(_WAIT_SECONDS * 1000))
        try:
            (socket.bind if binds else socket.connect)(address)
        except zmq.ZMQError as error:
            raise ConfigError(
                f"--kv-events-config: {address} cannot be {'bound' if binds else 'connected to'}: {error.strerror}", reason="kv_events_address",
                param="kv_events_config", fix="Give an address of this host whose port is free, such as tcp://127.0.0.1:5557 with \"bind\": true.",
            ) from None  # fmt: skip
        return socket

    def _release(self) -> None:
        for socket in self._sockets:
            socket.close()
        self._context.term()

    def _publish(self, socket: zmq.Socket[bytes]) -> None:
        encoder = msgspec.msgpack.Encoder()
        number = 0
        while (events := self._recorder.next_batch(_WAIT_SECONDS)) is not None:
            if not events:
                continue
            batch = encoder.encode(EventBatch(time.time(), events, self._rank))
            with self._lock:
                self._kept.append((number, batch))
            socket.send_multipart((self._topic, number.to_bytes(8, "big"), batch))
            self._recorder.published += len(events)
            number += 1

    def _replay(self, socket: zmq.Socket[bytes]) -> None:
        while not self._closed.is_set():
            try:
                frames = socket.recv_multipart()
            except zmq.Again:
                continue
            if len(frames) != 3 or len(frames[2]) != 8:
                _log.warning("a request for a replay of KV events has %d parts; expected an empty one and 8 bytes", len(frames) - 1)
                continue
            asker, first = frames[0], int.from_bytes(frames[2], "big")
            with self._lock:
                wanted = [each for each in self._kept if each[0] >= first]
            for number, batch in wanted:
                socket.send_multipart((asker, b"", number.to_bytes(8, "big"), batch))
            socket.send_multipart((asker, b"", END, b""))


def shifted(address: str, rank: int) -> str:
    """The address of a data parallel rank: the port plus the rank, and for other addresses a suffix."""
    if rank == 0:
        return address
    if address.startswith("tcp://"):
        host, _, port = address.rpartition(":")
        if not port.isdecimal():
            raise ConfigError(f"--kv-events-config: {address} has no port to count the ranks from", param="kv_events_config")
        return f"{host}:{int(port) + rank}"
    return f"{address}_dp{rank}"
