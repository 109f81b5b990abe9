"""`headway stop`: end servers that run on this machine."""

from __future__ import annotations

import contextlib

import click
import psutil

from headway.cli.server_client import listed
from headway.errors import HeadwayError
from headway.server.run_file import RunningServer, is_alive, running_servers


@click.command("stop")
@click.option("--port", type=int, help="The server on this port.")
@click.option("--pid", type=int, help="The server with this process id.")
@click.option("--all", "everything", is_flag=True, help="All servers of this user.")
@click.option("--timeout", default=30.0, show_default=True, help="Seconds to wait for the end.")
@click.option("--force", is_flag=True, help="Kill what has not ended by then.")
def stop_command(port: int | None, pid: int | None, everything: bool, timeout: float, force: bool) -> None:
    """Stop a server that runs on this machine: the only one, or the one that is named. Waits for its end."""
    for server in chosen(running_servers(), port, pid, everything):
        if not stop(server, timeout, force):
            raise HeadwayError(
                f"Process {server.pid} has not ended after {timeout:g} s",
                reason="not_stopped",
                fix="Use --force to kill it.",
            )
        click.echo(f"stopped {server.url} (pid {server.pid})")


def chosen(servers: list[RunningServer], port: int | None, pid: int | None, everything: bool) -> list[RunningServer]:
    """Raises HeadwayError unless the choice names servers of Headway; others are never touched."""
    found = [s for s in servers if (port is None or s.port == port) and (pid is None or s.pid == pid)]
    if not found:
        what = "".join([f" on port {port}" if port is not None else "", f" with pid {pid}" if pid is not None else ""])
        running = f"Running: {listed(servers)}." if servers else None
        raise HeadwayError(f"No Headway server of this user{what} runs here", reason="no_server", fix=running)
    if len(found) > 1 and not everything:
        raise HeadwayError(
            f"{len(found)} servers run here: {listed(found)}",
            reason="ambiguous_server",
            fix="Choose with --port or --pid, or use --all.",
        )
    return found


def stop(server: RunningServer, timeout: float, force: bool) -> bool:
    """SIGTERM, wait, with `force` SIGKILL. True when the process is gone."""
    try:
        process = psutil.Process(server.pid)
        if is_alive(server):
            process.terminate()
    except psutil.NoSuchProcess:
        return True
    with contextlib.suppress(psutil.TimeoutExpired):
        process.wait(timeout)
        return True
    if force and is_alive(server):
        process.kill()
        with contextlib.suppress(psutil.TimeoutExpired):
            process.wait(5.0)
    return not is_alive(server)
