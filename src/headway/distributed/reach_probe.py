"""Can each node be reached at its address, on a port that the system picks? That is how gloo and NCCL will connect."""

from __future__ import annotations

import asyncio
import errno
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

from headway.distributed.preflight import Attempt

CONNECT_SECONDS: Final = 5.0
_TOKEN_BYTES: Final = 32


@dataclass(frozen=True, slots=True)
class Door:
    """Where a node listens for probes. `token` is what it says to who comes, so that nobody else answers for it; port 0:
    it could not listen, for the reason in its facts."""

    node: int
    address: str
    port: int
    token: str


@asynccontextmanager
async def open_door(node: int, address: str) -> AsyncIterator[Door]:
    """Listen while the exchange lasts."""
    token = secrets.token_hex(_TOKEN_BYTES // 2)

    async def say_token(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(token.encode())
        writer.close()

    try:
        server = await asyncio.start_server(say_token, address or None, 0) if address else None
    except OSError:
        server = None
    if server is None:
        yield Door(node, address, 0, token)
        return
    async with server:
        yield Door(node, address, server.sockets[0].getsockname()[1], token)


async def knock(source: int, doors: Sequence[Door]) -> list[Attempt]:
    """Try all doors but the own one, at once."""
    return await asyncio.gather(*(_try(source, door) for door in doors if door.node != source and door.port))


async def _try(source: int, door: Door) -> Attempt:
    place = f"{door.address}:{door.port}"
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            reader, writer = await asyncio.open_connection(door.address, door.port)
            try:
                said = await reader.read(_TOKEN_BYTES)
            finally:
                writer.close()
    except TimeoutError:
        return Attempt(source, door.node, place, f"no answer in {CONNECT_SECONDS:g} s (a firewall, or no way there)")
    except OSError as error:
        return Attempt(source, door.node, place, connection_problem(error))
    return Attempt(source, door.node, place, "" if said == door.token.encode() else "somebody else answers there")


def connection_problem(error: OSError) -> str:
    """In few words, of the errors of connect()."""
    if isinstance(error, ConnectionRefusedError):
        return "refused (nothing listens there, or a firewall answers)"
    if error.errno in (errno.EHOSTUNREACH, errno.ENETUNREACH):
        return "no route to that address"
    return error.strerror or type(error).__name__
