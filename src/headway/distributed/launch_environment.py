"""How this process was launched: from flags, from four variables per node, or by torchrun, to a Topology.

Two customs share names. A guide that many people follow exports MASTER_ADDR, MASTER_PORT, RANK and WORLD_SIZE once per
node: there WORLD_SIZE counts nodes, RANK is the number of the node. torchrun starts several processes per node and sets
the same four for each: there WORLD_SIZE counts processes. Variables that only a launcher of processes sets tell them
apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from headway.distributed.topology import Source, Topology
from headway.errors import ConfigError

DEFAULT_ADDRESS: Final = "127.0.0.1"
DEFAULT_PORT: Final = 29501
MOST_NODES: Final = 1024

PER_PROCESS: Final = ("LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK", "GROUP_WORLD_SIZE", "ROLE_RANK", "TORCHELASTIC_RUN_ID")
"""Set by launchers that start one process per rank; a person who follows the guide sets none of them."""

FOUR: Final = ("MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE")


@dataclass(frozen=True, slots=True)
class LaunchFlags:
    """The flags that were given; None where one was not."""

    nnodes: int | None = None
    node_rank: int | None = None
    master_addr: str | None = None
    master_port: int | None = None


@dataclass(frozen=True, slots=True)
class Launch:
    """`sentence` is for one line of the log: how the process was launched and what follows."""

    topology: Topology
    sentence: str


class _Places(NamedTuple):
    nodes: int
    node_rank: int
    address: str
    port: int
    source: Source


def read_launch(
    flags: LaunchFlags, environment: Mapping[str, str], *, tensor: int, pipeline: int, data: int = 1, timeout_seconds: float = 60.0
) -> Launch:
    """What flags and variables say together.

    Raises ConfigError with one of the reasons `launch_value` (a variable or flag that is no such number),
    `launch_incomplete` (some of what belongs together is missing), `launch_contradiction` (flags and variables, or
    variables among each other, disagree), `ranks_do_not_divide` (tensor * pipeline over the nodes).
    """
    places = _under_launcher(flags, environment) if is_per_process(environment) else _on_nodes(flags, environment)
    nodes, rank = places.nodes, places.node_rank
    if not 1 <= nodes <= MOST_NODES:
        raise ConfigError(f"the number of nodes must be 1 to {MOST_NODES}, got {nodes}", reason="launch_value", param="nnodes")
    if not 0 <= rank < nodes:
        raise ConfigError(
            f"node {rank} does not exist among {nodes} node{'s' * (nodes > 1)}: they are numbered 0 to {nodes - 1}",
            reason="launch_contradiction", param="node_rank", fix=_count_fix(places.source, nodes, rank),
        )  # fmt: skip
    if tensor * pipeline % nodes:
        raise ConfigError(
            f"{tensor} x {pipeline} = {tensor * pipeline} ranks (tensor x pipeline) cannot be spread evenly over {nodes} {_unit(places.source)}",
            reason="ranks_do_not_divide", param="nnodes", fix=_divide_fix(places.source, nodes),
        )  # fmt: skip
    topology = Topology(tensor, pipeline, data, nodes, rank, places.address, places.port, timeout_seconds, places.source)
    return Launch(topology, _sentence(topology))


def is_per_process(environment: Mapping[str, str]) -> bool:
    """Whether torchrun, or another launcher that starts one process per rank, started this process."""
    return any(environment.get(name) for name in PER_PROCESS) and bool(environment.get("WORLD_SIZE"))


def _under_launcher(flags: LaunchFlags, environment: Mapping[str, str]) -> _Places:
    """Each process is a node of its own, with one or more ranks. The port of the launcher may be taken by its own store."""
    address, port, rank, world = _four(environment, "a launcher of processes (torchrun) set")
    local = _number(environment, "LOCAL_WORLD_SIZE", 1)
    if local is not None and local > world:
        raise _contradiction(f"LOCAL_WORLD_SIZE={local} processes on this node, but only WORLD_SIZE={world} in all", "LOCAL_WORLD_SIZE")
    place = _number(environment, "LOCAL_RANK", 0)
    if local is not None and place is not None and place >= local:
        raise _contradiction(f"LOCAL_RANK={place} is not below LOCAL_WORLD_SIZE={local}", "LOCAL_RANK")
    if environment.get("TORCHELASTIC_USE_AGENT_STORE", "").lower() == "true":
        port = port + 1 if port < 65535 else port - 1
    if flags.nnodes is not None and local is not None and flags.nnodes * local == world:
        flags = LaunchFlags(None, None, flags.master_addr, flags.master_port)  # it counts hosts, as that of torchrun does
    return _agreed(flags, _Places(world, rank, address, port, "torchrun"), own_port=True)


def _on_nodes(flags: LaunchFlags, environment: Mapping[str, str]) -> _Places:
    world = _number(environment, "WORLD_SIZE", 1)
    if world is not None and world > 1:
        address, port, rank, world = _four(environment, f"WORLD_SIZE={world} asks for several nodes, so each node needs")
        return _agreed(flags, _Places(world, rank, address, port, "variables"))
    rank_set = _number(environment, "RANK", 0)
    if rank_set and flags.nnodes in (None, 1):
        what = "WORLD_SIZE is not set" if world is None else "WORLD_SIZE=1"
        raise ConfigError(
            f"RANK={rank_set} says that this is one of several nodes, and {what}",
            reason="launch_incomplete" if world is None else "launch_contradiction", param="WORLD_SIZE",
            fix="Set WORLD_SIZE to the number of nodes, or unset RANK.",
        )  # fmt: skip
    if world == 1 and flags.nnodes is not None and flags.nnodes > 1:
        raise _contradiction(f"--nnodes {flags.nnodes}, but WORLD_SIZE=1", "nnodes")
    if flags.node_rank is not None and rank_set is not None and flags.node_rank != rank_set:
        raise _contradiction(f"--node-rank {flags.node_rank}, but RANK={rank_set}", "node_rank")
    nodes = flags.nnodes or 1
    if nodes == 1:
        return _Places(1, flags.node_rank or 0, flags.master_addr or DEFAULT_ADDRESS, flags.master_port or DEFAULT_PORT, "single")
    if flags.node_rank is None and rank_set is None:
        raise ConfigError(
            f"--nnodes {nodes} without --node-rank: which of the {nodes} nodes is this?", reason="launch_incomplete", param="node_rank",
            fix=f"Give each node its own --node-rank, 0 to {nodes - 1}.",
        )  # fmt: skip
    rank = flags.node_rank if flags.node_rank is not None else rank_set or 0
    port_set = _port(environment) if flags.master_port is None and environment.get("MASTER_PORT") else DEFAULT_PORT
    address = flags.master_addr or environment.get("MASTER_ADDR", "").strip() or DEFAULT_ADDRESS
    return _Places(nodes, rank, address, flags.master_port or port_set, "flags")


def _agreed(flags: LaunchFlags, said: _Places, *, own_port: bool = False) -> _Places:
    """Flags that are given must say what the variables say. Under a launcher the port is ours to choose."""
    pairs = (
        ("--nnodes", flags.nnodes, "WORLD_SIZE", said.nodes),
        ("--node-rank", flags.node_rank, "RANK", said.node_rank),
        ("--master-addr", flags.master_addr, "MASTER_ADDR", said.address),
        ("--master-port", None if own_port else flags.master_port, "MASTER_PORT", said.port),
    )
    for flag, given, name, value in pairs:
        if given is not None and given != value:
            raise _contradiction(f"{flag} {given}, but {name}={value}", flag.removeprefix("--").replace("-", "_"))
    return said._replace(port=flags.master_port or said.port)


def _four(environment: Mapping[str, str], because: str) -> tuple[str, int, int, int]:
    """Address, port, rank and world size. Raises ConfigError (`launch_incomplete`) unless all are there."""
    missing = [name for name in FOUR if not environment.get(name, "").strip()]
    if missing:
        raise ConfigError(
            f"{because} {', '.join(FOUR)}: {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing",
            reason="launch_incomplete", param=missing[0], fix="Set all four, or none and use --nnodes, --node-rank, --master-addr and --master-port.",
        )  # fmt: skip
    rank, world = _number(environment, "RANK", 0) or 0, _number(environment, "WORLD_SIZE", 1) or 1
    if rank >= world:
        raise _contradiction(f"RANK={rank} is not below WORLD_SIZE={world}: ranks are numbered 0 to {world - 1}", "RANK")
    return environment["MASTER_ADDR"].strip(), _port(environment), rank, world


def _port(environment: Mapping[str, str]) -> int:
    port = _number(environment, "MASTER_PORT", 1)
    if port is None or port > 65535:
        raise ConfigError(f"MASTER_PORT must be a port from 1 to 65535, got {port}", reason="launch_value", param="MASTER_PORT")
    return port


def _number(environment: Mapping[str, str], name: str, least: int) -> int | None:
    """None where the variable is not set or empty."""
    text = environment.get(name, "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= 9) or int(text) < least:
        raise ConfigError(f"{name} must be a whole number from {least}, got {text[:40]!r}", reason="launch_value", param=name)
    return int(text)


def _contradiction(what: str, param: str) -> ConfigError:
    return ConfigError(what, reason="launch_contradiction", param=param, fix="Keep one of them, or make them say the same.")


def _unit(source: Source) -> str:
    return "processes" if source == "torchrun" else "nodes"


def _count_fix(source: Source, nodes: int, rank: int) -> str:
    if source == "single":
        return f"Give --nnodes as well, at least {rank + 1}."
    return f"Give --nnodes {rank + 1} or more on every node, or another --node-rank." if nodes <= rank else ""


def _divide_fix(source: Source, nodes: int) -> str:
    if source == "torchrun":
        return f"torchrun started {nodes} processes: choose --tensor-parallel-size times --pipeline-parallel-size as a multiple of {nodes}."
    way_out = "" if source == "flags" else " If WORLD_SIZE and RANK are set for something else, unset them."
    return f"Choose --tensor-parallel-size times --pipeline-parallel-size as a multiple of {nodes}.{way_out}"


def _sentence(topology: Topology) -> str:
    t = topology
    if t.source == "single":
        return "One node: no other hosts take part."
    how = {
        "flags": f"Node {t.node_rank} of {t.nodes}, from flags",
        "variables": f"Node {t.node_rank} of {t.nodes}, from RANK and WORLD_SIZE: WORLD_SIZE counts nodes, since no launcher of processes set LOCAL_RANK",
        "torchrun": f"Process {t.node_rank} of {t.nodes}, started by torchrun or its like: WORLD_SIZE counts processes",
    }[t.source]
    ranks = t.local_ranks
    held = f"rank {ranks.start}" if len(ranks) == 1 else f"ranks {ranks.start} to {ranks.stop - 1}"
    role = f"no HTTP here, node 0 at {t.master_addr}:{t.master_port} serves" if t.headless else f"the others come to {t.master_addr}:{t.master_port}"
    return f"{how}; {held} of {t.ranks}; {role}."
