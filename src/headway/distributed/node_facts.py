"""NodeFacts: what a node tells the others before they start together, and how it is written down and read."""

from __future__ import annotations

import os
import platform
import shutil
import socket
import time
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Annotated, Final

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

from headway.distributed.model_digest import model_digest
from headway.distributed.node_address import Interface, interfaces, node_address
from headway.distributed.topology import Topology
from headway.errors import ArtifactError, LaunchError
from headway.host.cpu_budget import cpu_budget
from headway.host.memory_budget import memory_budget

MOST_BYTES: Final = 1 << 18
"""Facts of one node as JSON; a model of 2000 files fits."""

PACKAGES: Final = ("headway", "torch", "transformers")
SHM: Final = Path("/dev/shm")

_Text = Annotated[str, Field(max_length=400)]
_Table = Annotated[dict[_Text, _Text], Field(max_length=2000)]


@dataclass(frozen=True, slots=True, config=ConfigDict(extra="forbid", strict=False))
class NodeFacts:
    """One node. Times in seconds since 1970, sizes in bytes. `problem` is why no address could be used (`NodeAddress`)."""

    node: Annotated[int, Field(ge=0, lt=1 << 20)]
    host: _Text
    boot: _Text  # equal on two nodes that share a kernel
    clock: float
    master: _Text  # where it looks for node 0: address:port
    versions: _Table
    settings: _Table  # what all nodes must be told alike: flag -> value
    model: _Table  # file -> size and digest; empty where it is not here
    model_problem: _Text
    interface: _Text
    address: _Text
    chosen_by: _Text
    address_problem: _Text
    interfaces: Annotated[dict[_Text, list[_Text]], Field(max_length=500)]
    cpus: Annotated[int, Field(ge=0)]
    memory_bytes: Annotated[int, Field(ge=0)]
    shm_bytes: Annotated[int, Field(ge=-1)]  # of /dev/shm; -1 where there is none

    @property
    def label(self) -> str:
        return f"node {self.node} ({self.host})"


_ADAPTER: Final = TypeAdapter(NodeFacts)


def gather_facts(
    topology: Topology, model: Path | None, settings: Mapping[str, object], environment: Mapping[str, str] = os.environ
) -> NodeFacts:
    """Of this machine. `settings`: flags that must be equal everywhere, beside those of the topology. `model` None: it is
    not compared. Never raises for what is wrong here: that is a fact, too."""
    here = interfaces()
    chosen = node_address(topology.master_addr, topology.node_rank == 0, environment, here)
    files, problem = _model(model)
    told = {
        "--tensor-parallel-size": topology.tensor,
        "--pipeline-parallel-size": topology.pipeline,
        "--data-parallel-size": topology.data,
        "--nnodes": topology.nodes,
        **settings,
    }
    return NodeFacts(
        node=topology.node_rank,
        host=socket.gethostname()[:400],
        boot=_boot(),
        clock=time.time(),
        master=f"{topology.master_addr}:{topology.master_port}"[:400],
        versions=_versions(),
        settings={name: str(value)[:400] for name, value in told.items()},
        model=dict(files),
        model_problem=problem[:400],
        interface=chosen.interface,
        address=chosen.address[:400],
        chosen_by=chosen.chosen_by[:400],
        address_problem=chosen.problem,
        interfaces={one.name: _shown(one) for one in here[:500]},
        cpus=cpu_budget().threads,
        memory_bytes=memory_budget().limit,
        shm_bytes=_shm_bytes(),
    )


def write_facts(facts: NodeFacts) -> bytes:
    """As JSON."""
    return _ADAPTER.dump_json(facts)


def facts_from(members: object) -> NodeFacts:
    """Of what JSON became. Raises pydantic's ValidationError, which is a ValueError."""
    return _ADAPTER.validate_python(members)


def read_facts(text: bytes, source: str) -> NodeFacts:
    """`source` is named in the error. Raises LaunchError (`facts_invalid`)."""
    if len(text) > MOST_BYTES:
        raise LaunchError(f"{source}: {len(text)} bytes are no facts of a node, at most {MOST_BYTES} are read", reason="facts_invalid")
    try:
        return _ADAPTER.validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(step)[:60] for step in first["loc"]) or "the document"
        raise LaunchError(
            f"{source} holds no facts of a node: {place}: {first['msg']}", reason="facts_invalid",
            fix="Write the file with `headway doctor dist --collect FILE` of the same version.",
        ) from None  # fmt: skip


def _model(model: Path | None) -> tuple[Mapping[str, str], str]:
    if model is None:
        return {}, ""
    try:
        return model_digest(model), ""
    except ArtifactError as error:
        return {}, error.message


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "not installed"
    return found


def _shown(one: Interface) -> list[str]:
    return [*one.addresses, *(() if one.up else ("down",))]


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    except OSError:
        return socket.gethostname()


def _shm_bytes() -> int:
    try:
        return shutil.disk_usage(SHM).total
    except OSError:
        return -1
