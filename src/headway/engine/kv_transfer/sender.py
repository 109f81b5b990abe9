"""Sender: the producer's port. One thread accepts, one more for each consumer that pulls."""

from __future__ import annotations

import json
import logging
import os
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import numpy as np

from headway.engine.kv_transfer.frames import Frames, Kind
from headway.engine.kv_transfer.layout import Layout, differences
from headway.engine.kv_transfer.leases import Lease, Leases
from headway.engine.kv_transfer.settings import PARAM, TransferSettings
from headway.engine.kv_transfer.shared_key import NONCE_BYTES, proof, same, session_key
from headway.errors import ConfigError, TransferError
from headway.kvcache.block_hash import BlockHash
from headway.kvcache.offload.block_images import BlockImages
from headway.telemetry.transfer_stats import TransferStats

_log = logging.getLogger(__name__)
VERSION: Final = 1
HASH_BYTES: Final = 32
MOST_CONSUMERS: Final = 32  # at a time; more are hung up on, and compute their prompts
MOST_HASHES: Final = 65_536
FRAME_BYTES: Final = 4 << 20  # of blocks in a frame, unless one block is larger
_SMALL: Final = 4096
_MOST_ASKED: Final = MOST_HASHES * HASH_BYTES * 2 + _SMALL
_WAKE_SECONDS: Final = 0.2
_GREETING_SECONDS: Final = 10.0  # for whoever has not shown the key


def blocks_in_frame(image_bytes: int) -> int:
    return max(1, FRAME_BYTES // image_bytes)


class Sender:
    """Sends blocks of leases to whoever has the key. `sweep` is asked for whenever a lease may have ended; it runs elsewhere."""

    def __init__(
        self, settings: TransferSettings, engine_id: str, key: bytes, layout: Layout, images: BlockImages, leases: Leases,
        sweep: Callable[[], None], observe: Callable[[TransferStats], None],
    ):  # fmt: skip
        """Raises ConfigError when the port cannot be had."""
        self._settings, self._engine_id, self._key, self._layout = settings, engine_id, key, layout
        self._images, self._leases, self._sweep, self._observe = images, leases, sweep, observe
        try:
            self._listener = socket.create_server((settings.host, settings.port), family=_family(settings), backlog=MOST_CONSUMERS)
        except OSError as error:
            raise ConfigError(
                f"{PARAM}: {settings.host}:{settings.port} cannot be listened on: {error.strerror or error}", param=PARAM, fix="Choose another kv_ip or kv_port."
            ) from None
        self.port: Final[int] = self._listener.getsockname()[1]
        self._listener.settimeout(_WAKE_SECONDS)
        self._lock = threading.Lock()
        self._consumers: set[socket.socket] = set()
        self._closed = False
        self._thread = threading.Thread(target=self._accept, name="KVSender", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Hang up on everybody; returns within a second."""
        self._closed = True
        with self._lock:
            consumers = list(self._consumers)
        for connection in consumers:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._thread.join(2 * _WAKE_SECONDS)
        self._listener.close()

    def _accept(self) -> None:
        while not self._closed:
            if self._leases.due:
                self._sweep()
            try:
                connection, _ = self._listener.accept()
            except TimeoutError:
                continue
            except OSError:
                if not self._closed:
                    time.sleep(_WAKE_SECONDS)  # no file descriptor is free: try again
                continue
            with self._lock:
                full = len(self._consumers) >= MOST_CONSUMERS or self._closed
                if not full:
                    self._consumers.add(connection)
            if full:
                connection.close()
            else:
                threading.Thread(target=self._serve, args=(connection,), name="KVSend", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        started = time.monotonic()
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            frames = Frames(connection, started + _GREETING_SECONDS, produces=True)
            sent = self._answer(frames)
            self._observe(TransferStats("sent", sends=True, seconds=time.monotonic() - started, nbytes=sent * self._images.nbytes))
        except TransferError as error:
            _log.warning("KV blocks were not sent: %s [%s]", error.message, error.reason)
            self._observe(TransferStats(error.reason, sends=True))
        except Exception:
            _log.exception("KV blocks were not sent")
        finally:
            with self._lock:
                self._consumers.discard(connection)
            connection.close()

    def _answer(self, frames: Frames) -> int:
        """The whole talk; returns the number of blocks. Raises TransferError."""
        self._greet(frames)
        frames.deadline = time.monotonic() + self._settings.pull_seconds
        _, asked = frames.receive_json(Kind.ASK, most=_MOST_ASKED)
        lease, hashes = self._lease(frames, asked)
        count = next((i for i, pair in enumerate(zip(hashes, lease.hashes, strict=False)) if pair[0] != pair[1]), min(len(hashes), len(lease.hashes)))
        first = _number(asked.get("first"), len(lease.hashes))
        if count <= first:
            raise self._refusal(frames, "prompt_differs", "the blocks kept under that name belong to another prompt")
        frames.send_json(Kind.GRANT, {"blocks": count - first})
        self._send_blocks(frames, lease, lease.blocks[first:count])
        frames.receive_json(Kind.DONE, most=_SMALL)
        lease.done = True
        return count - first

    def _greet(self, frames: Frames) -> None:
        nonce = os.urandom(NONCE_BYTES)
        frames.send_json(Kind.HELLO, {"version": VERSION, "engine": self._engine_id, "nonce": nonce.hex()})
        _, given = frames.receive_json(Kind.PROOF, most=_SMALL)
        nonces = nonce + _hex(given.get("nonce"), NONCE_BYTES)
        if not same(_hex(given.get("proof"), 64), proof(self._key, nonces)):
            raise self._refusal(frames, "unauthorized", "the two engines have different keys")
        frames.send_json(Kind.WELCOME, {})
        frames.secure(session_key(self._key, nonces))

    def _lease(self, frames: Frames, asked: dict[str, Any]) -> tuple[Lease, list[BlockHash]]:
        layout = asked.get("layout")
        unlike = differences(self._layout, layout if isinstance(layout, dict) else {})
        if unlike:
            raise self._refusal(frames, "layout_mismatch", "; ".join(unlike))
        text = asked.get("hashes")
        chain = _hex(text, len(text) // 2 if isinstance(text, str) else 0)
        hashes = [chain[i : i + HASH_BYTES] for i in range(0, len(chain), HASH_BYTES)]
        lease = self._leases.find(str(asked.get("lease"))[:64], self._settings.pull_seconds)
        if lease is None:
            raise self._refusal(frames, "lease_unknown", "nothing is kept under that name (any more)")
        return lease, hashes

    def _send_blocks(self, frames: Frames, lease: Lease, blocks: list[int]) -> None:
        step = blocks_in_frame(self._images.nbytes)
        copied = np.empty((min(step, len(blocks)), self._images.nbytes), np.uint8)
        for start in range(0, len(blocks), step):
            part = blocks[start : start + step]
            for row, block in zip(copied, part, strict=False):
                self._images.read(block, row)
            if lease.revoked:
                raise TransferError("the blocks were needed for requests that run", reason="lease_revoked")
            frames.send(Kind.BLOCKS, copied[: len(part)].reshape(-1).data)

    def _refusal(self, frames: Frames, reason: str, message: str) -> TransferError:
        """Tell the consumer, and whoever reads the log here."""
        frames.send_json(Kind.REFUSED, {"reason": reason, "message": message})
        return TransferError(message, reason=reason)


def _family(settings: TransferSettings) -> socket.AddressFamily:
    return socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0][0]


def _hex(value: object, count: int) -> bytes:
    """Of `count` bytes. Raises TransferError."""
    try:
        found = bytes.fromhex(value) if isinstance(value, str) else b""
    except ValueError:
        found = b""
    if len(found) != count or not count:
        raise TransferError("a frame has not the fields that belong into it", reason="frame_damaged")
    return found


def _number(value: object, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise TransferError(f"a frame has {json.dumps(value)[:20]} where a number from 0 to {most} is expected", reason="frame_damaged")
    return value
