"""How a server is started, from what people keep: a shell line, a Compose file, a Kubernetes manifest, a unit file."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from headway.doctor.collect.processes import server_program
from headway.errors import DoctorError

_SERVER_IMAGES: Final = re.compile(r"vllm|headway|sglang|llama\.cpp|tensorrt")
_UNITS: Final = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40, "kb": 2**10, "mb": 2**20, "gb": 2**30}


def launch_part(text: str, name: str = "") -> dict[str, Any]:
    """`command`, `env`, `host` and `files` of a context, from the text of a launch file. `name`: its file name.

    Raises DoctorError (`launch_unknown`) when no server is started in it.
    """
    part = _from_yaml(text) if re.search(r"(?m)^\s*(?:services|kind|apiVersion|containers)\s*:", text) else _from_shell(text)
    if part is None:
        raise DoctorError(
            f"no model server is started in {name or 'this text'}",
            reason="launch_unknown",
            fix="Give a command line such as `vllm serve MODEL`, a Compose file or a Kubernetes manifest.",
        )
    return part


def launch_file_part(path: Path) -> dict[str, Any]:
    """`launch_part` of a file. Raises DoctorError when it cannot be read."""
    try:
        text = path.read_text("utf-8", "replace")
    except OSError as error:
        raise DoctorError(f"{path} cannot be read: {error}", reason="launch_unknown", fix="Give the path of a text file.") from error
    return launch_part(text, path.name)


def _from_shell(text: str) -> dict[str, Any] | None:
    """The first command of a script (or the ExecStart of a unit) that starts a server."""
    env: dict[str, str] = {}
    for line in re.sub(r"\\\r?\n", " ", text).splitlines():
        line = re.sub(r"^\s*(?:ExecStart\s*=\s*[-@:+!]*|\$ )", "", line)
        env |= dict(re.findall(r"^\s*(?:export\s+|Environment=\"?)([A-Z][A-Z0-9_]*)=\"?([^\"\s]*)", line))
        try:
            words = shlex.split(line, comments=True)
        except ValueError:
            words = line.split()
        while words and (assigned := re.fullmatch(r"([A-Z][A-Z0-9_]*)=(.*)", words[0])):
            env[assigned[1]] = assigned[2]
            words = words[1:]
        if words[:2] in (["docker", "run"], ["podman", "run"]):
            return {"command": line.strip(), **_docker(words, env)}
        if server_program(words) or (words[:1] == ["python"] and server_program(words[1:])):
            return {"command": shlex.join(words), **({"env": env} if env else {})}
    return None


def _docker(words: Sequence[str], env: dict[str, str]) -> dict[str, Any]:
    host: dict[str, Any] = {"in_container": True}
    for flag, value in zip(words, [*words[1:], ""], strict=True):
        name, joined, inline = flag.partition("=")
        given = inline if joined else value
        if name in ("-e", "--env"):
            key, _, content = given.partition("=")
            env[key] = content
        elif name == "--shm-size":
            host["shm_mib"] = _bytes(given) / 2**20
        elif name in ("-m", "--memory"):
            host["cgroup"] = {**host.get("cgroup", {}), "memory_max_gib": _bytes(given) / 2**30}
        elif name == "--cpus":
            host["cgroup"] = {**host.get("cgroup", {}), "cpu_max": _cpu_max(given)}
    if "shm_mib" not in host and not any(word.startswith("--ipc") for word in words):
        host["shm_mib"] = 64  # Docker's default
    return {"host": host, **({"env": env} if env else {})}


def _from_yaml(text: str) -> dict[str, Any] | None:
    try:
        documents = [document for document in yaml.safe_load_all(text) if isinstance(document, Mapping)]
    except (yaml.YAMLError, RecursionError):
        return None
    for document in documents:
        for container in _containers(document):
            words = [*_words(container.get("entrypoint", container.get("command"))), *_words(container.get("args"))]
            if isinstance(container.get("image"), str) and "services" in document:
                words = [*_words(container.get("entrypoint")), *_words(container.get("command"))]
            image = str(container.get("image", ""))
            if not server_program(words) and not _SERVER_IMAGES.search(image):
                continue
            if not server_program(words):
                words = ["vllm", "serve", *words]
            part: dict[str, Any] = {"command": shlex.join(words), "host": _limits(container, document)}
            if env := _environment(container):
                part["env"] = env
            return part
    return None


def _containers(node: Any, depth: int = 0) -> list[Mapping[str, Any]]:
    """Every mapping that describes a container, anywhere in a Compose file or a manifest."""
    if depth > 12:
        return []
    if isinstance(node, Mapping):
        services = node.get("services")
        if isinstance(services, Mapping):
            return [service for service in services.values() if isinstance(service, Mapping)]
        own = [entry for entry in node.get("containers") or [] if isinstance(entry, Mapping)] if isinstance(node.get("containers"), list) else []
        return own + [found for key, value in node.items() if key != "containers" for found in _containers(value, depth + 1)]
    if isinstance(node, list):
        return [found for value in node for found in _containers(value, depth + 1)]
    return []


def _words(value: Any) -> list[str]:
    if isinstance(value, str):
        return shlex.split(value)
    return [str(word) for word in value] if isinstance(value, list) else []


def _environment(container: Mapping[str, Any]) -> dict[str, str]:
    given = container.get("environment", container.get("env"))
    if isinstance(given, Mapping):
        return {str(name): str(value) for name, value in given.items()}
    env: dict[str, str] = {}
    for entry in given if isinstance(given, list) else []:
        if isinstance(entry, Mapping):
            env[str(entry.get("name"))] = str(entry.get("value", "from a secret"))
        else:
            name, _, value = str(entry).partition("=")
            env[name] = value
    return env


def _limits(container: Mapping[str, Any], document: Mapping[str, Any]) -> dict[str, Any]:
    host: dict[str, Any] = {"in_container": True}
    limits = (container.get("resources") or {}).get("limits") or ((container.get("deploy") or {}).get("resources") or {}).get("limits") or {}
    cgroup: dict[str, Any] = {}
    if memory := limits.get("memory", container.get("mem_limit")):
        cgroup["memory_max_gib"] = _bytes(str(memory)) / 2**30
    if cpus := limits.get("cpu", limits.get("cpus", container.get("cpus"))):
        cgroup["cpu_max"] = _cpu_max(str(cpus))
    if cgroup:
        host["cgroup"] = cgroup
    if "shm_size" in container:
        host["shm_mib"] = _bytes(str(container["shm_size"])) / 2**20
    elif container.get("ipc") != "host" and "/dev/shm" not in str(document):
        host["shm_mib"] = 64  # the default of Docker and of Kubernetes' container runtimes
    return host


def _bytes(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([a-zA-Z]*)", text.strip())
    return float(found[1]) * _UNITS.get(found[2].lower(), 1) if found else 0.0


def _cpu_max(text: str) -> str:
    """`500m` or `2.5` CPUs as the kernel writes a quota: microseconds per period."""
    try:
        cpus = float(text[:-1]) / 1000 if text.endswith("m") else float(text)
    except ValueError:
        return "max 100000"
    return f"{round(cpus * 100_000)} 100000"
