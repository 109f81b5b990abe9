"""`vllm-sr status`, `logs` and `stop`: routers that run on this machine."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click
import psutil

from headway import __version__
from headway.cli.sr_client import ManagementClient
from headway.cli.sr_ignored import ignored_options, place_options, tell_ignored
from headway.cli.sr_place import config_option, state_folder
from headway.cli.sr_run_file import RunningRouter, running_routers
from headway.errors import ConfigError, HeadwayError

_POLL_SECONDS = 0.2
_KILL_SECONDS = 5.0
_SERVICES = ("router", "all")


def _target_options(command: Any) -> Any:
    """Options of the product in containers that choose where it runs: there is one place here."""
    return place_options(ignored_options("--container-runtime")(command))


def _service(name: str) -> None:
    if name not in _SERVICES:
        raise ConfigError(f"there is no service {name!r}: the router is one process", param="service", fix="Leave the name out, or say router.")


def the_router(config: Path, pid: int | None = None) -> RunningRouter:
    """The router of this configuration's folder. Raises HeadwayError when none runs, or several do and none is named."""
    found = [router for router in running_routers(state_folder(config)) if pid is None or router.pid == pid]
    if not found:
        raise HeadwayError(f"no router with its state beside {config} runs here", reason="no_server", fix="Start one with `vllm-sr serve`, or name its --config.")
    if len(found) > 1:
        pids = ", ".join(str(router.pid) for router in found)
        raise HeadwayError(f"{len(found)} routers run with this state folder (pids {pids})", reason="ambiguous_server", fix="Choose one with --pid.")
    return found[0]


@click.command("status")
@click.argument("service", default="all")
@config_option
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@_target_options
def status_command(service: str, config: Path, as_json: bool) -> None:
    """Show the routers that run with this configuration's folder. Exits with 1 if there is none."""
    tell_ignored()
    _service(service)
    found = [status_of(router) for router in running_routers(state_folder(config))]
    show_statuses(found, as_json)
    if not found:
        the_router(config)


def show_statuses(found: Sequence[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    for status in found:
        for line in _lines(status):
            click.echo(line)


def status_of(router: RunningRouter) -> dict[str, Any]:
    """What its note and its management address tell; never raises."""
    told: dict[str, Any] = {"pid": router.pid, "config": router.config, "urls": router.urls, "uptime_seconds": round(time.time() - router.started, 1)}
    try:
        told["rss_bytes"] = psutil.Process(router.pid).memory_info().rss
        management = ManagementClient(router.urls["management"], 5.0, "VSR_MGMT_TOKEN")
        told["startup"] = management.call("GET", "/startup-status", any_status=True).json()
        told["version"] = management.router_version
        told["activation"] = management.call("GET", "/api/v1/config/hash").json()
    except (HeadwayError, ValueError, KeyError, psutil.Error) as error:
        told["problem"] = str(error)
    return told


def _lines(status: dict[str, Any]) -> list[str]:
    startup, activation = status.get("startup", {}), status.get("activation", {})
    lines = [f"router  pid {status['pid']}  {startup.get('phase', 'unreachable')}  up {status['uptime_seconds']:.0f} s  {status['config']}"]
    lines += [f"  {name:11} {url}" for name, url in status["urls"].items()]
    if status.get("version"):
        lines.append(f"  version     {status['version']}{'' if status['version'] == __version__ else f' (this command: {__version__})'}")
    if "rss_bytes" in status:
        lines.append(f"  memory      {status['rss_bytes'] / 2**20:,.0f} MiB")
    for deployment in startup.get("model_deployments", ()):
        lines.append(f"  deployment  {deployment.get('name')} ({deployment.get('artifact') or 'attached'}) {deployment.get('state')}")
    if activation.get("activation_status"):
        lines.append(f"  config      {activation['activation_status']}, generation {activation.get('generation')}")
    for problem in filter(None, (activation.get("error"), status.get("problem"))):
        lines.append(f"  problem     {problem}")
    return lines


@click.command("logs")
@click.argument("service", default="router")
@config_option
@click.option("-f", "--follow", is_flag=True, help="Go on as lines are written.")
@click.option("-n", "--lines", type=click.IntRange(min=0), default=100, show_default=True, help="How many of the last lines.")
@_target_options
def logs_command(service: str, config: Path, follow: bool, lines: int) -> None:
    """Show the log of the router that has, or had, its state beside this configuration."""
    tell_ignored()
    from headway.router.process.log_file import FILE_NAME

    _service(service)
    path = state_folder(config) / FILE_NAME
    try:
        file = path.open(encoding="utf-8", errors="replace")
    except OSError as error:
        raise HeadwayError(f"{path} cannot be read: {error.strerror}", reason="no_log", fix="Start a router with `vllm-sr serve`.") from error
    with file:
        for line in deque(file, lines):
            click.echo(line, nl=False)
        while follow:
            if line := file.readline():
                click.echo(line, nl=False)
            else:
                time.sleep(_POLL_SECONDS)


@click.command("stop")
@config_option
@click.option("--pid", type=int, help="The router with this process id.")
@click.option("--timeout", default=30.0, show_default=True, help="Seconds to wait for the end.")
@click.option("--force", is_flag=True, help="Kill it when it has not ended by then.")
@_target_options
def stop_command(config: Path, pid: int | None, timeout: float, force: bool) -> None:
    """Stop the router of this configuration's folder. Requests that run are finished first."""
    tell_ignored()
    router = the_router(config, pid)
    process = psutil.Process(router.pid)
    process.terminate()
    if not _ended(router, timeout):
        if not force:
            raise HeadwayError(f"process {router.pid} has not ended after {timeout:g} s", reason="not_stopped", fix="Use --force to kill it.")
        process.kill()
        _ended(router, _KILL_SECONDS)
    click.echo(f"stopped the router (pid {router.pid})")


def _ended(router: RunningRouter, seconds: float) -> bool:
    """Whether it has ended within that time; a process that its parent has not looked after counts as ended."""
    deadline = time.monotonic() + seconds
    while router.is_alive:
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL_SECONDS / 4)
    return True
