"""How a managed worker is started: its identity, its files, its command."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

from headway.router.deployments.managed_worker import Launch
from headway.router.deployments.runtime_environment import RuntimeEnvironment
from headway.router.deployments.specification import Replica, Specification

_MAX_REQUEST_BYTES = 67_108_864
_MAX_BUNDLE_TASKS = 1024
_NAME_IN_FILES = 24


def worker_id(specification: Specification, ordinal: int, environment: RuntimeEnvironment) -> str:
    """`r-` and 12 hex digits: equal for replicas that may share a worker across a reload, which are those with the same everything."""
    replica = specification.replicas[ordinal]
    runs = {} if replica.endpoint is not None else {
        "models": _models(specification, replica), "flags": _flags(specification, replica, environment), "command": environment.command,
        "cache": str(environment.cache),
    }  # fmt: skip
    place = [replica.device, replica.endpoint, replica.served_name]
    given = json.dumps([specification.name, place, ordinal, runs], sort_keys=True)
    return f"r-{hashlib.sha256(given.encode()).digest()[:6].hex()}"


def file_name(specification: Specification, id: str) -> str:
    """`<deployment>-<id>` without an ending; the deployment's name shortened to what a file may be called."""
    return f"{re.sub('[^A-Za-z0-9_-]', '_', specification.name)[:_NAME_IN_FILES]}-{id}"


def launch_of(specification: Specification, replica: Replica, folder: Path, name: str, environment: RuntimeEnvironment) -> Launch:
    socket, models_file = folder / f"{name}.sock", folder / f"{name}.models.json"
    command = (
        *environment.command, "serve", "--models", str(models_file), "--uds", str(socket),
        "--max-request-bytes", str(_MAX_REQUEST_BYTES), "--max-bundle-tasks", str(_MAX_BUNDLE_TASKS),
        *(("--cache-dir", str(environment.cache)) if environment.cache else ()), *_flags(specification, replica, environment),
    )  # fmt: skip
    return Launch(command, socket, models_file, json.dumps({"models": _models(specification, replica)}).encode())


def _models(specification: Specification, replica: Replica) -> list[dict[str, Any]]:
    entry = {"model": specification.artifact, "revision": specification.revision, "name": replica.served_name, "device": replica.device}
    return [{key: value for key, value in {**entry, **specification.engine}.items() if value is not None}]


def _flags(specification: Specification, replica: Replica, environment: RuntimeEnvironment) -> list[str]:
    flags: list[str] = []
    if replica.device in ("auto", "cpu"):
        flags += ["--threads", str(environment.threads)]
    if specification.max_num_batched_tokens is not None:
        flags += ["--max-batch-tokens", str(specification.max_num_batched_tokens)]
    for word in specification.accept_licences:
        flags += ["--accept-licence", word]
    return flags
