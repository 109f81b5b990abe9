"""One short exchange before a launch: every node brings its facts to node 0, all try to reach each other, all hear the verdict.

Order on each connection: greeting (`sealed_stream`); facts and door of the caller; three readings of its clock; the doors
of all; what the caller reached; the verdict. Everything is JSON of known shape, limited in bytes and time.
"""

from __future__ import annotations

import asyncio
import errno
import struct
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from pydantic import TypeAdapter, ValidationError

from headway.distributed.cluster_key import ClusterKey
from headway.distributed.disagreement import Disagreement
from headway.distributed.node_address import resolved
from headway.distributed.node_facts import MOST_BYTES, NodeFacts, read_facts, write_facts
from headway.distributed.preflight import Attempt, Seen, compare
from headway.distributed.reach_probe import CONNECT_SECONDS, Door, connection_problem, knock, open_door
from headway.distributed.sealed_stream import SealedStream, introduce, welcome
from headway.distributed.topology import Topology
from headway.errors import LaunchError

_RETRY_SECONDS: Final = 0.2
_MESSAGE_SECONDS: Final = 10.0
_LARGE_BYTES: Final = 1 << 22
_STRANGERS_AT_MOST: Final = 16
_CLOCK_READINGS: Final = 3

_DOORS: Final = TypeAdapter(list[Door])
_ATTEMPTS: Final = TypeAdapter(list[Attempt])
_VERDICT: Final = TypeAdapter(list[Disagreement])


@dataclass(frozen=True, slots=True)
class CheckedNodes:
    """`warnings` do not keep the nodes from starting. `addresses`: where each node is reached, by its number."""

    warnings: tuple[Disagreement, ...]
    addresses: Mapping[int, str]


def check_nodes(topology: Topology, facts: NodeFacts, key: ClusterKey) -> CheckedNodes:
    """Meet the other nodes and compare. Blocks at most `topology.timeout_seconds` and some seconds for the probes.

    Raises LaunchError on every node when something would hang or answer wrongly,
    with the reason of the first disagreement; also `master_unreachable`, `key_differs`, `port_taken`, `address_not_here`.
    """
    if topology.nodes == 1:
        return CheckedNodes((), {topology.node_rank: facts.address})
    meeting = _host(topology, facts, key) if topology.node_rank == 0 else _visit(topology, facts, key)
    found, doors = asyncio.run(meeting)
    refusing = [one for one in found if one.refuses]
    if refusing:
        told = " | ".join(f"{one.sentence}. To fix it: {one.fix}" for one in refusing)  # one line, for logs
        raise LaunchError(f"The nodes cannot start together: {told}", reason=refusing[0].reason)
    return CheckedNodes(tuple(found), {door.node: door.address for door in doors})


# ---------------------------------------------------------------------------------------------------- node 0


@dataclass(frozen=True, slots=True)
class _Guest:
    """A node that came."""

    facts: NodeFacts
    door: Door
    ahead: float
    stream: SealedStream


class _Arrivals:
    """Takes connections until all nodes are there."""

    def __init__(self, key: bytes, wanted: int):
        self._key, self._wanted = key, wanted
        self._guests: list[_Guest] = []
        self.strangers: list[str] = []
        self.complete = asyncio.Event()
        self._busy = 0

    @property
    def guests(self) -> list[_Guest]:
        """Those that are still connected: one that was started again counts once."""
        return [guest for guest in self._guests if not guest.stream.has_left]

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._busy > self._wanted + 64 or self.complete.is_set():
            writer.close()
            return
        self._busy += 1
        try:
            stream = await welcome(reader, writer, self._key)
            facts = read_facts(await stream.receive(MOST_BYTES, _MESSAGE_SECONDS), "a node")
            (door,) = _DOORS.validate_json(await stream.receive(MOST_BYTES, _MESSAGE_SECONDS))
            ahead = await _clock_ahead(stream)
        except (LaunchError, ValidationError, ValueError, struct.error) as error:
            peer = writer.get_extra_info("peername")
            if isinstance(error, LaunchError) and error.reason == "key_differs" and peer and len(self.strangers) < _STRANGERS_AT_MOST:
                self.strangers.append(str(peer[0]))
            writer.close()
            return
        finally:
            self._busy -= 1
        self._guests.append(_Guest(facts, door, ahead, stream))
        if len(self.guests) >= self._wanted:
            self.complete.set()


async def _host(topology: Topology, facts: NodeFacts, key: ClusterKey) -> tuple[Sequence[Disagreement], Sequence[Door]]:
    arrivals = _Arrivals(key.secret, topology.nodes - 1)
    server = await _listen(arrivals, topology)
    async with server, open_door(0, facts.address) as door:
        try:
            async with asyncio.timeout(topology.timeout_seconds):
                await arrivals.complete.wait()
        except TimeoutError:
            arrivals.complete.set()
        guests = arrivals.guests
        missing = sorted(set(range(1, topology.nodes)) - {guest.facts.node for guest in guests})
        attempts = [] if missing else await _all_knock(facts, guests, door)
        left = {guest.facts.node for guest in guests if guest.stream.has_left}
        seen = Seen(
            attempts=attempts,
            ahead={guest.facts.node: guest.ahead for guest in guests},
            missing=sorted({*missing, *left}),
            waited_seconds=topology.timeout_seconds,
            strangers=arrivals.strangers,
            open_port="" if key.is_secret or _is_loopback(topology.master_addr) else f"{topology.master_addr}:{topology.master_port}",
            port=topology.master_port,
        )
        found = compare([facts, *(guest.facts for guest in guests)], seen)
        await asyncio.gather(*(_tell(guest.stream, _VERDICT.dump_json(list(found))) for guest in guests))
        for guest in guests:
            guest.stream.close()
        return found, [door, *(guest.door for guest in guests)]


async def _listen(arrivals: _Arrivals, topology: Topology) -> asyncio.Server:
    place = f"{topology.master_addr}:{topology.master_port}"
    address = resolved(topology.master_addr)
    if address is None:
        raise LaunchError(f"--master-addr {topology.master_addr} is no known name", reason="master_unresolved", fix="Give an IP address of this node.")
    try:
        return await asyncio.start_server(arrivals.take, address, topology.master_port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise LaunchError(f"{place} is taken by another process", reason="port_taken", fix="End that process, or give all nodes another --master-port.") from None
        if error.errno == errno.EADDRNOTAVAIL:
            raise LaunchError(
                f"{topology.master_addr} is no address of node 0", reason="address_not_here", fix="Give all nodes an address of node 0 as --master-addr."
            ) from None
        raise LaunchError(f"node 0 cannot listen at {place}: {error.strerror}", reason="port_taken", fix="Give all nodes another --master-port.") from None


async def _all_knock(facts: NodeFacts, guests: Sequence[_Guest], own: Door) -> list[Attempt]:
    doors = [own, *(guest.door for guest in guests)]
    told = _DOORS.dump_json(doors)
    mine, *theirs = await asyncio.gather(knock(0, doors), *(_ask_attempts(guest, told) for guest in guests))
    sound = {node.node for node in (facts, *(guest.facts for guest in guests)) if not node.address_problem}
    deaf = [Attempt(0, door.node, door.address, "that node cannot listen there") for door in doors if not door.port and door.node in sound]
    return [*deaf, *mine, *(attempt for list_ in theirs for attempt in list_)]


async def _ask_attempts(guest: _Guest, doors: bytes) -> list[Attempt]:
    """Of a node that fails here nothing is known; it is named as one that left."""
    try:
        await guest.stream.send(doors)
        return _ATTEMPTS.validate_json(await guest.stream.receive(_LARGE_BYTES, CONNECT_SECONDS + _MESSAGE_SECONDS))
    except (LaunchError, ValidationError):
        guest.stream.close()
        return []


async def _tell(stream: SealedStream, verdict: bytes) -> None:
    if not stream.has_left:
        try:
            await stream.send(b"")  # ends the waiting for doors, where none were sent
            await stream.send(verdict)
        except LaunchError:
            stream.close()


async def _clock_ahead(stream: SealedStream) -> float:
    """Seconds; of several readings the one with the shortest way counts."""
    best = (float("inf"), 0.0)
    for _ in range(_CLOCK_READINGS):
        before = time.time()
        await stream.send(b"clock")
        (theirs,) = struct.unpack(">d", await stream.receive(8, _MESSAGE_SECONDS))
        after = time.time()
        best = min(best, (after - before, theirs - (before + after) / 2))
    return best[1]


# ---------------------------------------------------------------------------------------------------- other nodes


async def _visit(topology: Topology, facts: NodeFacts, key: ClusterKey) -> tuple[Sequence[Disagreement], Sequence[Door]]:
    async with open_door(facts.node, facts.address) as door:
        stream = await _reach(topology, key)
        try:
            await stream.send(write_facts(facts))
            await stream.send(_DOORS.dump_json([door]))
            for _ in range(_CLOCK_READINGS):
                await stream.receive(8, _MESSAGE_SECONDS)
                await stream.send(struct.pack(">d", time.time()))
            patience = topology.timeout_seconds + CONNECT_SECONDS + 2 * _MESSAGE_SECONDS
            doors: list[Door] = []
            if told := await stream.receive(_LARGE_BYTES, patience):
                doors = _DOORS.validate_json(told)
                await stream.send(_ATTEMPTS.dump_json(await knock(facts.node, doors)))
                await stream.receive(0, patience)
            return _VERDICT.validate_json(await stream.receive(_LARGE_BYTES, patience)), doors
        except LaunchError as error:
            raise LaunchError(
                f"node 0 at {topology.master_addr}:{topology.master_port} broke off the comparison: {error.message}", reason=error.reason, fix="Its log says why."
            ) from None
        except ValidationError:
            raise LaunchError("node 0 sent what this version cannot read", reason="message_invalid", fix="Use one version of Headway on all nodes.") from None
        finally:
            stream.close()


async def _reach(topology: Topology, key: ClusterKey) -> SealedStream:
    """Try again until node 0 listens or time is over."""
    place = f"{topology.master_addr}:{topology.master_port}"
    end = time.monotonic() + topology.timeout_seconds
    problem = ""
    while (left := end - time.monotonic()) > 0:
        try:
            async with asyncio.timeout(min(left, CONNECT_SECONDS)):
                reader, writer = await asyncio.open_connection(topology.master_addr, topology.master_port)
        except TimeoutError:
            problem = "no answer (a firewall, or no way there)"
        except OSError as error:
            problem = connection_problem(error)
        else:
            try:
                return await introduce(reader, writer, key.secret)
            except LaunchError as error:
                writer.close()
                problem = error.message
                if error.reason == "key_differs":
                    raise
        await asyncio.sleep(_RETRY_SECONDS)
    raise LaunchError(
        f"node {topology.node_rank} cannot reach node 0 at {place} within {topology.timeout_seconds:g} s: {problem}", reason="master_unreachable",
        fix=f"Is node 0 started there, and is the port open? From this node: `nc -zv {topology.master_addr} {topology.master_port}`.",
    )  # fmt: skip


def _is_loopback(address: str) -> bool:
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"
