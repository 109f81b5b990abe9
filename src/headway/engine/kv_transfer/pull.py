"""One pull: a consumer fetches the blocks of a prompt. Blocking; runs on a thread of its own."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from headway.engine.kv_transfer.frames import Frames, Kind
from headway.engine.kv_transfer.layout import Layout
from headway.engine.kv_transfer.params import RemotePrefill
from headway.engine.kv_transfer.sender import VERSION, blocks_in_frame
from headway.engine.kv_transfer.settings import KEY_VARIABLE
from headway.engine.kv_transfer.shared_key import NONCE_BYTES, is_loopback, proof, session_key
from headway.errors import TransferError
from headway.kvcache.block_hash import BlockHash

_SMALL: Final = 4096
_REASONS: Final = frozenset({"layout_mismatch", "lease_unknown", "prompt_differs", "unauthorized"})  # of producers that refuse


class Pull:
    """`run` once; `abort` from any thread ends it."""

    def __init__(self, source: RemotePrefill, layout: Layout, key: bytes, deadline: float):
        self._source, self._layout, self._key, self._deadline = source, layout, key, deadline
        self._lock = threading.Lock()
        self._connection: socket.socket | None = None
        self._aborted = False

    def run(self, hashes: Sequence[BlockHash], first: int) -> NDArray[np.uint8]:
        """Images of the blocks that `hashes[first:]` name, as far as the producer has them: [count, bytes of a block] with at least
        one row. Nothing is sent to a peer that does not greet like a producer. Raises TransferError."""
        connection = self._connected()
        try:
            return self._talk(Frames(connection, self._deadline, produces=False), hashes, first)
        finally:
            connection.close()

    def abort(self) -> None:
        with self._lock:
            self._aborted = True
            if self._connection is not None:
                with suppress(OSError):
                    self._connection.shutdown(socket.SHUT_RDWR)

    def _connected(self) -> socket.socket:
        source = self._source
        try:
            found = socket.getaddrinfo(source.host, source.port, type=socket.SOCK_STREAM)[0]
        except (OSError, UnicodeError):
            raise TransferError("the producer's name has no address", reason="unreachable") from None
        if not self._key and not is_loopback(str(found[4][0])):
            raise TransferError(f"without a key ({KEY_VARIABLE}) blocks are pulled from this host only", reason="key_missing")
        connection = socket.socket(found[0], socket.SOCK_STREAM)
        with self._lock:
            self._connection = connection
            if self._aborted:
                connection.close()
                raise TransferError("nobody waits for the blocks any more", reason="aborted")
        try:
            left = self._deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            connection.settimeout(left)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.connect(found[4])
        except TimeoutError:
            connection.close()
            raise TransferError("the producer took too long", reason="timed_out") from None
        except OSError as error:
            connection.close()
            raise TransferError(f"the producer cannot be reached: {error.strerror or type(error).__name__}", reason="unreachable") from None
        return connection

    def _talk(self, frames: Frames, hashes: Sequence[BlockHash], first: int) -> NDArray[np.uint8]:
        self._greet(frames)
        frames.send_json(Kind.ASK, {"lease": self._source.lease, "layout": dict(self._layout), "first": first, "hashes": b"".join(hashes).hex()})
        kind, granted = frames.receive_json(Kind.GRANT, Kind.REFUSED, most=_SMALL)
        if kind is Kind.REFUSED:
            raise _refused(granted)
        count = granted.get("blocks")
        if not isinstance(count, int) or isinstance(count, bool) or not 1 <= count <= len(hashes) - first:
            raise TransferError("the producer grants blocks that were not asked for", reason="frame_damaged")
        width = int(self._layout["image_bytes"])
        rows = np.empty((count, width), np.uint8)
        step = blocks_in_frame(width)
        for start in range(0, count, step):
            frames.receive_into(Kind.BLOCKS, rows[start : start + step].reshape(-1).data)
        with suppress(TransferError):  # all is here; the producer's lease ends by itself
            frames.send_json(Kind.DONE, {})
        return rows

    def _greet(self, frames: Frames) -> None:
        _, hello = frames.receive_json(Kind.HELLO, most=_SMALL)
        if hello.get("version") != VERSION:
            raise TransferError(f"the producer speaks version {str(hello.get('version'))[:10]}, this engine {VERSION}", reason="version_mismatch")
        if hello.get("engine") != self._source.engine_id:
            raise TransferError("at the producer's address is another engine now", reason="engine_changed")
        nonces = _nonce(hello) + (own := os.urandom(NONCE_BYTES))
        frames.send_json(Kind.PROOF, {"nonce": own.hex(), "proof": proof(self._key, nonces).hex()})
        kind, answer = frames.receive_json(Kind.WELCOME, Kind.REFUSED, most=_SMALL)
        if kind is Kind.REFUSED:
            raise _refused(answer)
        frames.secure(session_key(self._key, nonces))


def _nonce(hello: dict[str, Any]) -> bytes:
    try:
        return bytes.fromhex(hello["nonce"])
    except (KeyError, TypeError, ValueError):
        raise TransferError("the producer's greeting has no nonce", reason="frame_damaged") from None


def _refused(answer: dict[str, Any]) -> TransferError:
    reason, message = answer.get("reason"), answer.get("message")
    shown = "".join(c for c in str(message)[:300] if c.isprintable())
    return TransferError(f"the producer refuses: {shown}", reason=reason if reason in _REASONS else "refused")
