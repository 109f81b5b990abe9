"""The parts that collectors bring, put together into one context: what `headway doctor collect` writes."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from headway.doctor.collect.environment import environment_part, process_environment, remarks
from headway.doctor.collect.host import host_part
from headway.doctor.collect.launch_files import Launched
from headway.doctor.collect.model import model_part
from headway.doctor.collect.network import Address, is_here
from headway.doctor.collect.processes import ServerProcess
from headway.doctor.collect.transcript import Transcript
from headway.doctor.collect.versions import versions_part
from headway.doctor.evidence.context import Context, masked
from headway.doctor.facts.launch import command_flags


def joined(*parts: Mapping[str, Any]) -> dict[str, Any]:
    """Mappings merged member by member; of two other values the later one stands."""
    whole: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            before = whole.get(key)
            whole[key] = joined(before, value) if isinstance(before, Mapping) and isinstance(value, Mapping) else value
    return whole


def context_of_process(server: ServerProcess) -> dict[str, Any]:
    """All that can be known of a server that runs here, without asking it anything."""
    env = process_environment(server.pid)
    interpreter = Path(server.argv[0])
    return joined(
        context_of_machine(env, server.pid, interpreter if interpreter.is_absolute() and interpreter.name.startswith("python") else None),
        {"command": server.command},
        _model(server.command),
    )


def context_of_launch(launch: Launched, here: bool) -> dict[str, Any]:
    """`here`: this machine is the one meant. What starts in a container has its own variables, versions and limits, and only
    the hardware of the machine."""
    around = context_of_machine() if here else {}
    if here and launch.host.get("in_container"):
        around = {"host": {name: value for name, value in around["host"].items() if name in _HARDWARE}}
    context = joined(around, launch.part, _model(shlex.join(launch.words)))
    found = remarks(context.get("env", {}))
    return {**context, "env_remarks": found} if found else context


_HARDWARE: Final = ("os", "ram_gib", "available_gib", "cpus", "cpu_model", "cpu_flags", "driver", "gpus", "listeners", "interfaces", "mounts")
_OF_A_CALLER: Final = ("in_container", "interfaces")


def context_of_caller(address: Address) -> dict[str, Any]:
    """Of this machine as one that calls `address`: how fast it computes says nothing about the server. Who listens here
    counts when the address is one of this machine's."""
    host = host_part()
    wanted = (*_OF_A_CALLER, "listeners") if is_here(address.host) else _OF_A_CALLER
    return {"env": environment_part(), "host": {name: host[name] for name in wanted}}


def context_of_machine(env: Mapping[str, str] | None = None, pid: int | None = None, interpreter: Path | None = None) -> dict[str, Any]:
    """`pid`, `env`, `interpreter`: those of a process that is meant instead of this one."""
    env = dict(os.environ) if env is None else dict(env)
    part: dict[str, Any] = {"versions": versions_part(interpreter), "env": environment_part(env), "host": host_part(pid=pid)}
    if found := remarks(env):
        part["env_remarks"] = found
    return part


def with_probes(context: Mapping[str, Any], transcript: Transcript) -> dict[str, Any]:
    return joined(context, {"host": {"probes": list(transcript.lines)}}) if transcript.lines else dict(context)


def as_context(tree: Mapping[str, Any]) -> Context:
    """The same object that reading the written file gives: masked, text keys."""
    return Context(masked(tree))


def as_yaml(tree: Mapping[str, Any]) -> str:
    return yaml.safe_dump(masked(tree), sort_keys=False, allow_unicode=True, width=140)


def _model(command: str) -> dict[str, Any]:
    flags = dict(command_flags(command))
    name = flags.get("model") or flags.get("m") or flags.get("model_path")
    return {"model": model_part(name)} if name else {}
