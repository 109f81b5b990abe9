"""How a server is started, from what people keep: a shell line, a Compose file, a Kubernetes manifest, a unit file."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from headway.doctor.collect.processes import server_words
from headway.errors import DoctorError

_IS_YAML: Final = re.compile(r"(?m)^\s*(?:services|kind|apiVersion|containers)\s*:")
# options of `docker run` without a value
_DOCKER_SWITCHES: Final = frozenset(
    {"--rm", "-d", "--detach", "-i", "--interactive", "-t", "--tty", "-it", "-ti", "-dit", "-itd", "-di", "-dt", "-td", "--init", "--privileged",
     "--read-only", "--no-healthcheck", "--oom-kill-disable", "-P", "--publish-all", "-q", "--quiet", "--sig-proxy"}
)  # fmt: skip
# images whose entry point is the server, and the words that it stands for
_IMAGES: Final = (
    (re.compile(r"vllm-openai|vllm/vllm|(?:^|/)vllm(?::|$)"), ("vllm", "serve")),
    (re.compile(r"headway"), ("headway", "serve")),
    (re.compile(r"llama\.cpp:server|llama-server"), ("llama-server",)),
)
_UNITS: Final = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40, "kb": 2**10, "mb": 2**20, "gb": 2**30}


@dataclass(frozen=True, slots=True)
class Launched:
    """`command` as it is typed; `words`: of it those from the server's program on. `env` and `host` as in a context.
    `in_a_cluster`: it comes from a manifest."""

    command: str
    words: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    host: Mapping[str, Any] = field(default_factory=dict)
    in_a_cluster: bool = False

    @property
    def part(self) -> dict[str, Any]:
        """Of a context."""
        members = {"command": self.command, "env": dict(self.env), "host": dict(self.host)}
        return {name: value for name, value in members.items() if value}


def launched_by(text: str, name: str = "") -> Launched:
    """From a shell line, or the text of a script, unit, Compose file or manifest. `name`: its file name.

    Raises DoctorError (`launch_unknown`) when no server is started in it.
    """
    found = _from_yaml(text) if _IS_YAML.search(text) else _from_shell(text)
    if found is None:
        raise DoctorError(
            f"no model server is started in {name or repr(text[:60])}",
            reason="launch_unknown",
            fix="Give a command line such as `vllm serve MODEL`, or a script, unit, Compose file or Kubernetes manifest that has one.",
        )
    return found


def _from_shell(text: str) -> Launched | None:
    """The first command of a script (or the ExecStart of a unit) that starts a server."""
    env = dict(re.findall(r"(?m)^\s*Environment=\"?([A-Z][A-Z0-9_]*)=\"?([^\"\s]*)", text))
    limits: dict[str, Any] = {}
    for name, value in re.findall(r"(?m)^\s*(MemoryMax|CPUQuota)\s*=\s*(\S+)", text):
        limits |= _unit_limit(name, value)
    for line in re.sub(r"\\\r?\n", " ", text).splitlines():
        words, command = _command_of(line, env)
        if words[:2] in (["docker", "run"], ["podman", "run"]):
            if (found := _docker(words, command, env)) is not None:
                return found
            continue
        if own := server_words(words):
            return Launched(shlex.join(words), tuple(own), env, {"cgroup": limits} if limits else {})
        if (inner := _shell_text(words)) and (found := _from_shell(inner)) is not None:
            return _within(found, env, found.host)
    return None


def _command_of(line: str, env: dict[str, str]) -> tuple[list[str], str]:
    """The words of a line without what sets variables (which go to `env`), and its text."""
    line = re.sub(r"^\s*(?:ExecStart\s*=\s*[-@:+!]*|\$ )", "", line).strip()
    env |= dict(re.findall(r"^export\s+([A-Z][A-Z0-9_]*)=\"?([^\"\s]*)", line))
    try:
        words = shlex.split(line, comments=True)
    except ValueError:
        words = line.split()
    while words and (words[0] in ("env", "exec", "sudo") or re.match(r"[A-Z][A-Z0-9_]*=", words[0])):
        name, assigned, value = words.pop(0).partition("=")
        if assigned:
            env[name] = value
    return words, line


def _within(found: Launched, env: Mapping[str, str], host: Mapping[str, Any], in_a_cluster: bool = False) -> Launched:
    """What a shell starts inside a container: variables of both, its own before those around it."""
    return Launched(found.command, found.words, {**env, **found.env}, host, in_a_cluster)


def _unit_limit(name: str, value: str) -> dict[str, Any]:
    """Of a systemd unit. `infinity` and shares of the machine set nothing."""
    if name == "CPUQuota":
        return {"cpu_max": _cpu_max(str(float(value[:-1]) / 100))} if re.fullmatch(r"\d+(?:\.\d+)?%", value) else {}
    return {"memory_max_gib": _bytes(value) / 2**30} if _bytes(value) else {}


def _shell_text(words: Sequence[str]) -> str:
    """The script of `sh -c SCRIPT`, "" for anything else."""
    is_shell = len(words) > 2 and re.fullmatch(r"(?:\S*/)?(?:ba|da|z)?sh", words[0]) is not None
    return words[2] if is_shell and re.fullmatch(r"-[a-z]*c", words[1]) else ""


def _docker(words: Sequence[str], command: str, env: dict[str, str]) -> Launched | None:
    """`docker run OPTIONS IMAGE WORDS`; None when the image is no server's and no server is started in it."""
    host: dict[str, Any] = {"in_container": True}
    cgroup: dict[str, Any] = {}
    entry: list[str] = []
    index = 2
    while index < len(words) and words[index].startswith("-"):
        flag, joined, value = words[index].partition("=")
        takes_next = not joined and flag not in _DOCKER_SWITCHES
        value = words[index + 1] if takes_next and index + 1 < len(words) else value
        index += 2 if takes_next else 1
        if flag in ("-e", "--env") and "=" in value:  # without a value it is the caller's own
            env[value.partition("=")[0]] = value.partition("=")[2]
        elif flag == "--entrypoint":
            entry = [value]
        elif flag == "--shm-size":
            host["shm_mib"] = _bytes(value) / 2**20
        elif flag in ("-m", "--memory"):
            cgroup["memory_max_gib"] = _bytes(value) / 2**30
        elif flag == "--cpus":
            cgroup["cpu_max"] = _cpu_max(value)
    if "shm_mib" not in host and not any(word.startswith("--ipc") for word in words):
        host["shm_mib"] = 64  # Docker's default
    found = _in_image(words[index] if index < len(words) else "", [*entry, *words[index + 1 :]])
    if found is None:
        return None
    return Launched(command, found.words, {**env, **found.env}, host | ({"cgroup": cgroup} if cgroup else {}))


def _in_image(image: str, words: Sequence[str]) -> Launched | None:
    """What `words` start in a container of `image`, whose entry point may be the server."""
    if text := _shell_text(words):
        return _from_shell(text)
    own = server_words(words)
    if not own:
        start = next((start for pattern, start in _IMAGES if pattern.search(image)), None)
        if start is None:
            return None
        words = own = [*start, *words]
    return Launched(shlex.join(words), tuple(own))


def _from_yaml(text: str) -> Launched | None:
    try:
        documents = [document for document in yaml.safe_load_all(text) if isinstance(document, Mapping)]
    except (yaml.YAMLError, RecursionError):
        return None
    for document in documents:
        for container in _containers(document):
            if (found := _of_container(container, document)) is not None:
                return found
    return None


def _of_container(container: Mapping[str, Any], document: Mapping[str, Any]) -> Launched | None:
    """Compose: `entrypoint` and `command`; Kubernetes: `command` and `args`."""
    of_compose = "services" in document
    first, second = ("entrypoint", "command") if of_compose else ("command", "args")
    found = _in_image(str(container.get("image", "")), [*_words(container.get(first)), *_words(container.get(second))])
    return None if found is None else _within(found, _environment(container), _limits(container, document), not of_compose)


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
        try:
            return shlex.split(value.replace("\\\n", " "))
        except ValueError:
            return value.split()
    return [str(word) for word in value] if isinstance(value, list) else []


def _environment(container: Mapping[str, Any]) -> dict[str, str]:
    """A variable from elsewhere (a secret, the caller's own) has no value here."""
    given = container.get("environment", container.get("env"))
    if isinstance(given, Mapping):
        return {str(name): str(value) for name, value in given.items()}
    env: dict[str, str] = {}
    for entry in given if isinstance(given, list) else []:
        if isinstance(entry, Mapping):
            env[str(entry.get("name"))] = str(entry.get("value", ""))
        else:
            name, _, value = str(entry).partition("=")
            env[name] = value
    return env


def _limits(container: Mapping[str, Any], document: Mapping[str, Any]) -> dict[str, Any]:
    host: dict[str, Any] = {"in_container": True}
    limits = _member(container, "resources", "limits") or _member(container, "deploy", "resources", "limits")
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


def _member(node: Any, *path: str) -> Mapping[str, Any]:
    for name in path:
        node = node.get(name) if isinstance(node, Mapping) else None
    return node if isinstance(node, Mapping) else {}


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
