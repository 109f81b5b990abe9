"""The comparison of what nodes say about themselves, and of what they saw of each other. Pure; opens no connection."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Final

from headway.distributed.disagreement import Disagreement
from headway.distributed.node_facts import NodeFacts

CLOCK_SECONDS: Final = 1.0
SHM_BYTES: Final = 128 << 20
MEMORY_RATIO: Final = 1.25
_FILES_SHOWN: Final = 4


@dataclass(frozen=True, slots=True)
class Attempt:
    """A connection from one node to another's address. `problem` is "" where it came about."""

    source: int
    target: int
    place: str
    problem: str


@dataclass(frozen=True, slots=True)
class Seen:
    """What an exchange saw beside facts. `ahead`: node -> seconds that its clock is ahead of node 0's."""

    attempts: Sequence[Attempt] = ()
    ahead: Mapping[int, float] = field(default_factory=dict)
    missing: Sequence[int] = ()
    waited_seconds: float = 0.0
    strangers: Sequence[str] = ()  # addresses that came with another key
    open_port: str = ""  # where node 0 listens, when the key is not secret and the address not loopback
    port: int = 0


def compare(nodes: Sequence[NodeFacts], seen: Seen | None = None) -> tuple[Disagreement, ...]:
    """All disagreements, those that refuse the start first. `seen` None: the facts come from files."""
    found = list(_of_facts(nodes))
    if seen is None:
        found += _of_masters(nodes)
    else:
        found += _of_exchange(nodes, seen)
    return tuple(sorted(found, key=lambda one: not one.refuses))


def _of_facts(nodes: Sequence[NodeFacts]) -> Iterator[Disagreement]:
    for number in sorted({node.node for node in nodes}):
        same = [node for node in nodes if node.node == number]
        if len(same) > 1:
            yield Disagreement("node_rank_twice", True, f"node {number}", tuple((node.host, node.address) for node in same))
    for package in sorted({name for node in nodes for name in node.versions}):
        versions = [node.versions.get(package, "unknown") for node in nodes]
        if len(set(versions)) > 1:
            yield Disagreement("version_differs", _versions_refuse(package, versions), package, _table(nodes, lambda n, p=package: n.versions.get(p, "unknown")), max(versions, key=_order))  # type: ignore[misc]
    yield from _of_models(nodes)
    for flag in sorted({name for node in nodes for name in node.settings}):
        if len({node.settings.get(flag) for node in nodes}) > 1:
            yield Disagreement("setting_differs", True, flag, _table(nodes, lambda n, f=flag: n.settings.get(f, "not given")))  # type: ignore[misc]
    yield from _of_addresses(nodes)
    if small := [node for node in nodes if 0 <= node.shm_bytes < SHM_BYTES]:
        yield Disagreement("shm_small", False, "/dev/shm", _table(small, lambda n: _mib(n.shm_bytes)), _mib(SHM_BYTES))
    if len({node.cpus for node in nodes}) > 1:
        yield Disagreement("cpus_differ", False, "CPUs", _table(nodes, lambda n: str(n.cpus)))
    memory = [node.memory_bytes for node in nodes]
    if memory and max(memory) > MEMORY_RATIO * min(memory):
        yield Disagreement("memory_differs", False, "memory", _table(nodes, lambda n: f"{n.memory_bytes / 2**30:.1f} GiB"))


def _of_models(nodes: Sequence[NodeFacts]) -> Iterator[Disagreement]:
    lacking = [node for node in nodes if not node.model and node.model_problem]
    if lacking:
        yield Disagreement("model_missing", True, "the model", _table(lacking, lambda n: n.model_problem))
    having = [node for node in nodes if node.model]
    names = sorted({name for node in having for name in node.model})
    different = [name for name in names if len({node.model.get(name) for node in having}) > 1]
    if different:
        shown = different[:_FILES_SHOWN]
        more = f" and {len(different) - _FILES_SHOWN} more" if len(different) > _FILES_SHOWN else ""
        values = _table(having, lambda n: ", ".join(f"{name} {n.model.get(name, 'missing')}" for name in shown))
        yield Disagreement("model_differs", True, ", ".join(shown) + more, values)


def _of_addresses(nodes: Sequence[NodeFacts]) -> Iterator[Disagreement]:
    for node in nodes:
        if node.address_problem in ("interface_missing", "interface_down", "address_not_here", "master_unresolved", "no_route"):
            there = ", ".join(f"{name} {' '.join(addresses)}".strip() for name, addresses in node.interfaces.items())
            yield Disagreement(node.address_problem, True, node.chosen_by, ((node.label, f"it has {there or 'no interface'}"),))
    if len({node.boot for node in nodes}) > 1 and (own := [node for node in nodes if _is_loopback(node.address)]):
        yield Disagreement("loopback_between_hosts", True, "loopback", _table(own, lambda n: f"{n.address}, chosen by {n.chosen_by}"))


def _of_masters(nodes: Sequence[NodeFacts]) -> Iterator[Disagreement]:
    """From files: who is missing, and whether all look for node 0 at one place. In an exchange they have met."""
    count = max((int(text) for node in nodes if (text := node.settings.get("--nnodes", "1")).isdecimal() and len(text) < 5), default=1)
    for number in sorted(set(range(count)) - {node.node for node in nodes}):
        yield Disagreement("node_not_given", False, f"node {number}", (), str(count))
    if len({node.master for node in nodes}) > 1:
        yield Disagreement("master_differs", True, "--master-addr", _table(nodes, lambda n: n.master))


def _of_exchange(nodes: Sequence[NodeFacts], seen: Seen) -> Iterator[Disagreement]:
    for number in seen.missing:
        yield Disagreement("node_missing", True, f"node {number}", (), f"{seen.waited_seconds:g}")
    for stranger in dict.fromkeys(seen.strangers):
        yield Disagreement("key_differs", bool(seen.missing), stranger, ())
    if seen.open_port:
        yield Disagreement("key_not_secret", False, seen.open_port, ())
    label = {node.node: node.label for node in nodes}
    failed = [attempt for attempt in seen.attempts if attempt.problem]
    if failed:
        values = tuple((f"{label.get(a.source, a.source)} -> {label.get(a.target, a.target)}", f"{a.place}: {a.problem}") for a in failed)
        yield Disagreement("unreachable", True, "connections", values, str(seen.port))
    if any(abs(seconds) > CLOCK_SECONDS for seconds in seen.ahead.values()):
        far = [node for node in nodes if abs(seen.ahead.get(node.node, 0.0)) > CLOCK_SECONDS]
        yield Disagreement("clock_differs", False, "clocks", _table(far, lambda n: f"{seen.ahead[n.node]:+.1f} s"))


def _table(nodes: Sequence[NodeFacts], value: Callable[[NodeFacts], str]) -> tuple[tuple[str, str], ...]:
    return tuple((node.label, value(node)) for node in nodes)


def _versions_refuse(package: str, versions: Sequence[str]) -> bool:
    """Headway's own protocol has no other versions than its own; others promise nothing between their first two numbers.
    Later numbers, and builds (`+cpu`), only draw a warning."""
    if package == "headway":
        return True
    return len({tuple(re.findall(r"\d+", version)[:2]) for version in versions}) > 1


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d{1,9}", version)[:3])


def _is_loopback(address: str) -> bool:
    try:
        return ip_address(address).is_loopback
    except ValueError:
        return False


def _mib(nbytes: int) -> str:
    return f"{nbytes / 2**20:.0f} MiB"
