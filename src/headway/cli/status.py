"""`headway status`: the servers that run on this machine, or one server anywhere."""

from __future__ import annotations

import json
import re
import time
from dataclasses import asdict, dataclass
from typing import Any

import click
import psutil

from headway.cli.server_client import ServerClient, server_url
from headway.cli.trust import Trust, trust_options
from headway.cli.wait import readiness
from headway.errors import HeadwayError
from headway.server.run_file import RunningServer, running_servers

_GAUGE = re.compile(
    r"^vllm:(num_requests_running|num_requests_waiting|kv_cache_usage_perc)\{[^}]*\} (\S+)$", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class ServerStatus:
    """What is known from outside. Counts are None when the server does not tell; `rss_bytes` and `uptime` (seconds) only
    for processes of this machine."""

    url: str
    state: str
    stage: str = ""
    progress: float = 0.0
    reason: str = ""
    ranks: tuple[dict[str, Any], ...] = ()  # the processes that compute the model together, where there are several
    model: str | None = None
    version: str | None = None
    running: int | None = None
    waiting: int | None = None
    kv_usage: float | None = None
    pid: int | None = None
    uptime: float | None = None
    rss_bytes: int | None = None


def server_status(url: str, note: RunningServer | None = None, trust: Trust | None = None) -> ServerStatus:
    """Ask the server; never raises because of what it answers."""
    client = ServerClient(url, timeout=5.0, trust=trust)
    health = readiness(client)
    known: dict[str, str] = {}
    gauges: dict[str, float] = {}
    if health.state not in ("unreachable", "untrusted"):
        known = _json(client, "/version")
        gauges = _gauges(client)
    process = _process(note)
    return ServerStatus(
        url, health.state, health.stage, health.progress, health.reason, health.ranks,
        model=note.model if note else None,
        version=known.get("version"),
        running=_whole(gauges.get("num_requests_running")),
        waiting=_whole(gauges.get("num_requests_waiting")),
        kv_usage=gauges.get("kv_cache_usage_perc"),
        pid=note.pid if note else None,
        uptime=time.time() - note.started if note else None,
        rss_bytes=process.memory_info().rss if process else None,
    )  # fmt: skip


@click.command("status")
@click.option("--url", help="One server, here or elsewhere.")
@trust_options
@click.option("--json", "as_json", is_flag=True, help="Print a JSON list.")
def status_command(url: str | None, cacert: str | None, cert: str | None, key: str | None, as_json: bool) -> None:
    """Show the servers that run on this machine. Exits with 1 if there is none."""
    trust = Trust(cacert, cert, key)
    if url is not None:
        found = [server_status(server_url(url), trust=trust)]
    else:
        found = [server_status(note.url, note, trust) for note in running_servers()]
    if as_json:
        click.echo(json.dumps([asdict(status) for status in found], indent=2))
    else:
        for line in (line for status in found for line in status_lines(status)):
            click.echo(line)
    if not found:
        raise HeadwayError(
            "No server of this user runs here", reason="no_server", fix="Start one with `headway serve`."
        )
    if url is not None and found[0].state in ("unreachable", "untrusted"):
        raise HeadwayError(found[0].reason or f"No answer from {found[0].url}", reason="no_server")


def status_lines(status: ServerStatus) -> list[str]:
    """One line of what it is, one of numbers, one for each process that computes a part of the model; for a person."""
    state = f"{status.stage} {status.progress:.0%}" if status.stage else status.state
    if status.reason:
        state += f": {status.reason}"
    numbers = [
        f"pid {status.pid}" if status.pid is not None else "",
        f"up {_duration(status.uptime)}" if status.uptime is not None else "",
        f"{status.rss_bytes / 2**20:,.0f} MiB" if status.rss_bytes is not None else "",
        f"{status.running} running" if status.running is not None else "",
        f"{status.waiting} waiting" if status.waiting is not None else "",
        f"KV cache {status.kv_usage:.1%} in use" if status.kv_usage is not None else "",
    ]
    head = "  ".join(part for part in (status.url, status.model or "", state) if part)
    return [head, "  " + ", ".join(part for part in numbers if part), *map(_rank_line, status.ranks)]


def _rank_line(rank: dict[str, Any]) -> str:
    told = {name: str(rank.get(name, "?"))[:80] for name in ("rank", "host", "pid", "state", "silent_seconds")}
    return "  rank {rank} on {host}, pid {pid}: {state}, heard {silent_seconds} s ago".format(**told)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def _json(client: ServerClient, path: str) -> dict[str, str]:
    try:
        return client.json(path)
    except HeadwayError:
        return {}


def _gauges(client: ServerClient) -> dict[str, float]:
    try:
        return {name: float(value) for name, value in _GAUGE.findall(client.get("/metrics").text)}
    except (HeadwayError, ValueError):
        return {}


def _process(note: RunningServer | None) -> psutil.Process | None:
    try:
        return psutil.Process(note.pid) if note else None
    except psutil.Error:
        return None
