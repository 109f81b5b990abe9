"""A TCP connection on which both ends have proved that they know the key, and every message is signed.

Greeting: the listener sends a magic word and a nonce, the caller its nonce and HMAC-SHA256(key, "client" + both), the
listener a byte and HMAC-SHA256(key, "server" + both). Then messages: 4 bytes of length (big-endian), a signature over
direction, counter and content, and the content. Signed, not encrypted: what travels is no secret. Nothing is unpickled.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import secrets
import struct
from typing import Final

from headway.errors import LaunchError

MAGIC: Final = b"HEADWAY\x01"
GREETING_SECONDS: Final = 10.0
_NONCE: Final = 32
_MAC: Final = 32
_WELCOME: Final = b"\x01"
_REFUSED: Final = b"\x00"


class SealedStream:
    """Messages in order. All methods raise LaunchError (`peer_left`, `message_invalid`) for what the other end does."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, session: bytes, is_caller: bool):
        self._reader, self._writer = reader, writer
        self._session = session
        self._out, self._in = (b"c", b"s") if is_caller else (b"s", b"c")
        self._sent = self._received = 0

    @property
    def has_left(self) -> bool:
        return self._reader.at_eof() or self._writer.is_closing()

    async def send(self, content: bytes) -> None:
        self._writer.write(struct.pack(">I", len(content)) + self._mac(self._out, self._sent, content) + content)
        self._sent += 1
        try:
            await self._writer.drain()
        except OSError as error:
            raise LaunchError(f"the connection broke: {error.strerror or error}", reason="peer_left") from None

    async def receive(self, most_bytes: int, seconds: float) -> bytes:
        """The next message. Raises LaunchError also (`peer_silent`) when none has come after `seconds`."""
        try:
            async with asyncio.timeout(seconds):
                (length,) = struct.unpack(">I", await self._reader.readexactly(4))
                if length > most_bytes:
                    raise LaunchError(f"a message of {length} bytes, at most {most_bytes} are read", reason="message_invalid")
                mac = await self._reader.readexactly(_MAC)
                content = await self._reader.readexactly(length)
        except TimeoutError:
            raise LaunchError(f"no message within {seconds:g} s", reason="peer_silent") from None
        except (asyncio.IncompleteReadError, OSError):
            raise LaunchError("the other end closed the connection", reason="peer_left") from None
        if not hmac.compare_digest(mac, self._mac(self._in, self._received, content)):
            raise LaunchError("a message has a wrong signature", reason="message_invalid")
        self._received += 1
        return content

    def close(self) -> None:
        self._writer.close()

    def _mac(self, direction: bytes, counter: int, content: bytes) -> bytes:
        return _sign(self._session, direction + struct.pack(">Q", counter) + content)


async def welcome(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, key: bytes) -> SealedStream:
    """As the listener. Raises LaunchError: `key_differs`, or `peer_unknown` for who does not speak this protocol."""
    mine = secrets.token_bytes(_NONCE)
    try:
        async with asyncio.timeout(GREETING_SECONDS):
            writer.write(MAGIC + mine)
            answer = await reader.readexactly(_NONCE + _MAC)
            theirs, mac = answer[:_NONCE], answer[_NONCE:]
            if not hmac.compare_digest(mac, _sign(key, b"client" + mine + theirs)):
                writer.write(_REFUSED + bytes(_MAC))
                await writer.drain()
                raise LaunchError("the key of the caller is another", reason="key_differs")
            writer.write(_WELCOME + _sign(key, b"server" + mine + theirs))
            await writer.drain()
    except (TimeoutError, asyncio.IncompleteReadError, OSError):
        raise LaunchError("a caller that does not speak this protocol", reason="peer_unknown") from None
    return SealedStream(reader, writer, _sign(key, b"session" + mine + theirs), is_caller=False)


async def introduce(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, key: bytes) -> SealedStream:
    """As the caller. Raises LaunchError: `key_differs`, or `peer_unknown` where something else listens."""
    mine = secrets.token_bytes(_NONCE)
    try:
        async with asyncio.timeout(GREETING_SECONDS):
            greeting = await reader.readexactly(len(MAGIC) + _NONCE)
            if not greeting.startswith(MAGIC):
                raise LaunchError("something else than Headway listens there", reason="peer_unknown")
            theirs = greeting[len(MAGIC) :]
            writer.write(mine + _sign(key, b"client" + theirs + mine))
            await writer.drain()
            answer = await reader.readexactly(1 + _MAC)
    except (TimeoutError, asyncio.IncompleteReadError, OSError):
        raise LaunchError("what listens there does not speak Headway's protocol", reason="peer_unknown") from None
    if answer[:1] != _WELCOME or not hmac.compare_digest(answer[1:], _sign(key, b"server" + theirs + mine)):
        raise LaunchError("the key of node 0 is another", reason="key_differs", fix="Set the same HEADWAY_CLUSTER_KEY on every node.")
    return SealedStream(reader, writer, _sign(key, b"session" + theirs + mine), is_caller=True)


def _sign(key: bytes, content: bytes) -> bytes:
    return hmac.new(key, content, hashlib.sha256).digest()
