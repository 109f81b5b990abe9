"""The parts that collectors bring, put together into one context: what `headway doctor collect` writes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from headway.doctor.collect.environment import environment_part, process_environment, remarks
from headway.doctor.collect.host import host_part
from headway.doctor.collect.launch_files import launch_file_part, launch_part
from headway.doctor.collect.model import model_part
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


def context_of_launch(text_or_file: str, host: bool = True) -> dict[str, Any]:
    """From a shell line, or the path of a script, Compose file or manifest. `host`: this machine is the one meant."""
    path = Path(text_or_file)
    part = launch_file_part(path) if len(text_or_file) < 4096 and "\n" not in text_or_file and path.is_file() else launch_part(text_or_file)
    around = context_of_machine() if host else {}
    return joined(around, part, _model(str(part["command"])))


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
