"""A Ray node of this machine that `headway cluster up` started: how it starts, how it is found again, how it ends.

Ray itself does the work (`ray start --block`, in a session of its own). A note in `$HEADWAY_CACHE/run` says which process
that is, so that ending it touches no other Ray of this machine. Ray listens on every interface and runs what it is sent, so
its token authentication is always on; the token follows from HEADWAY_CLUSTER_KEY, or from a key that the head makes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import psutil

from headway.artifacts.cache_folders import headway_cache
from headway.distributed.cluster_key import VARIABLE
from headway.errors import ConfigError, LaunchError

STOP_SECONDS: Final = 45.0  # Ray drains a node for up to 30
_STARTED: Final = "Ray runtime started"
_LOG_BYTES: Final = 1 << 20
_SHOWN_LINES: Final = 3


@dataclass(frozen=True, slots=True)
class RayNode:
    """`started`: creation time of the process in seconds, which tells it from a later one with the same id. `address` is
    the head's, HOST:PORT."""

    pid: int
    started: float
    address: str
    is_head: bool


@dataclass(frozen=True, slots=True)
class RayPlace:
    """What to start: a head (`address` None) at `host`:`port`, or a node of the cluster at `address`."""

    address: str | None
    host: str | None
    port: int
    cpus: int | None
    object_store_bytes: int | None


def require_ray() -> None:
    """Raises ConfigError (`ray_missing`)."""
    if find_spec("ray") is None:
        raise ConfigError("Ray is not installed", reason="ray_missing", fix='Install it: pip install "headway[ray]".')


def key_file() -> Path:
    return _folder() / "cluster-key"


def ray_variables(environment: Mapping[str, str] = os.environ, *, make: bool = False) -> dict[str, str]:
    """What Ray has to find in its environment. `make`: a key is made and kept where there is none.

    Raises ConfigError (`key_missing`).
    """
    key = environment.get(VARIABLE, "").strip() or _kept_key()
    if not key and not make:
        raise ConfigError(
            "the key of the cluster is not known here", reason="key_missing", param=VARIABLE, fix=f"Set {VARIABLE} to what the head has ({key_file()} there)."
        )
    if not key:
        key = _made_key()
    token = hashlib.sha256(f"headway ray: {key}".encode()).hexdigest()
    return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token, "RAY_USAGE_STATS_ENABLED": "0"}


def running_node() -> RayNode | None:
    """The node that `start_node` started here and that still runs."""
    try:
        noted = RayNode(**json.loads(_note().read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    if _is_same(noted) or _left_behind(noted):
        return noted
    _note().unlink(missing_ok=True)
    return None


def start_node(place: RayPlace, timeout_seconds: float) -> RayNode:
    """Start Ray here and wait until it is there.

    Raises ConfigError (`ray_missing`, `key_missing`), LaunchError (`already_up`, `ray_failed`).
    """
    require_ray()
    if (there := running_node()) is not None:
        raise LaunchError(
            f"a Ray node of {there.address} runs here already (process {there.pid})", reason="already_up", fix="End it with `headway cluster down` first."
        )
    variables = ray_variables(make=place.address is None)
    _folder().mkdir(mode=0o700, parents=True, exist_ok=True)
    log = _folder() / "ray.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", *_words(place)], stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT,
            env={**os.environ, **variables}, start_new_session=True,
        )  # fmt: skip
    try:
        text = _until_started(process, log, timeout_seconds)
        node = RayNode(process.pid, psutil.Process(process.pid).create_time(), place.address or _address_in(text), place.address is None)
        _note().write_text(json.dumps(asdict(node)), "utf-8")
    except BaseException:
        _end_group(process.pid)
        process.wait()
        raise
    return node


def stop_node() -> RayNode | None:
    """End what `start_node` started here, and nothing else; None where there is nothing to end."""
    node = running_node()
    if node is None:
        return None
    with contextlib.suppress(ProcessLookupError):
        os.kill(node.pid, signal.SIGTERM)
    end = time.monotonic() + STOP_SECONDS
    while _is_same(node) and time.monotonic() < end:
        time.sleep(0.1)
    _end_group(node.pid)
    _note().unlink(missing_ok=True)
    return node


def _words(place: RayPlace) -> list[str]:
    if place.address is not None:
        words = [f"--address={place.address}"]
    else:
        words = ["--head", f"--port={place.port}", "--include-dashboard=false", "--disable-usage-stats"]
    optional = (("--node-ip-address", place.host), ("--num-cpus", place.cpus), ("--object-store-memory", place.object_store_bytes))
    return words + [f"{name}={value}" for name, value in optional if value is not None]


def _until_started(process: subprocess.Popen[bytes], log: Path, timeout_seconds: float) -> str:
    end = time.monotonic() + timeout_seconds
    while True:
        ended = process.poll() is not None
        text = _tail(log)
        if _STARTED in text and not ended:
            return text
        if ended or time.monotonic() > end:
            lines = [line.strip() for line in text.splitlines() if line.strip()][-_SHOWN_LINES:]
            what = f"ended with status {process.returncode}" if ended else f"was not there after {timeout_seconds:g} s"
            raise LaunchError(f"Ray {what}: {' | '.join(lines)[:600] or 'it printed nothing'}", reason="ray_failed", fix=f"All that it printed: {log}")
        time.sleep(0.1)


def _tail(log: Path) -> str:
    with log.open("rb") as file:
        return file.read(_LOG_BYTES).decode("utf-8", "replace")


def _address_in(text: str) -> str:
    """Ray says under which address others join; it replaces loopback by the machine's own."""
    for line in text.splitlines():
        if "--address=" in line:
            return line.partition("--address=")[2].strip(" '\"")
    raise LaunchError("Ray did not say where it listens", reason="ray_failed", fix="Is this a version that Headway was not tested with?")


def _is_same(node: RayNode) -> bool:
    try:
        process = psutil.Process(node.pid)
        return abs(process.create_time() - node.started) < 1 and process.status() != psutil.STATUS_ZOMBIE
    except psutil.Error:
        return False


def _left_behind(node: RayNode) -> bool:
    """Whether the process is gone and others of its group are not. The kernel gives its number to nobody while they live."""
    if psutil.pid_exists(node.pid):
        return False
    try:
        os.killpg(node.pid, 0)
    except OSError:
        return False
    return True


def _end_group(pid: int) -> None:
    """Ray's processes stay in the session of the one that started them."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _kept_key() -> str:
    try:
        return key_file().read_text("ascii").strip()
    except OSError:
        return ""


def _made_key() -> str:
    key = secrets.token_hex(32)
    key_file().parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with os.fdopen(os.open(key_file(), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(key + "\n")
    return key


def _folder() -> Path:
    return headway_cache() / "run"


def _note() -> Path:
    return _folder() / "ray.json"
