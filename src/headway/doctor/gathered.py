"""Everything that `headway doctor collect` writes down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headway.doctor.collect.assemble import context_of_launch, context_of_machine, context_of_process, joined
from headway.doctor.collect.launch_source import launched
from headway.doctor.collect.network import parse_address
from headway.doctor.collect.processes import ServerProcess, server_at, server_processes
from headway.doctor.live import Look, examine_server
from headway.errors import DoctorError


def gather(pid: int | None, launch: str | None, url: str | None, api_key: str | None, measure: bool = False) -> dict[str, Any]:
    """Of a process, of a launch command, or of the only server that runs here; with answers of the server at `url`, and with
    what the machine can do at most when it is to be measured (some seconds).

    Raises DoctorError (`server_unknown`) when `pid` is no server.
    """
    if launch is not None:
        start = launched(launch)
        context = context_of_launch(start, here=not start.in_a_cluster)
    else:
        servers = server_processes()
        chosen = _chosen(servers, pid, url)
        context = context_of_process(chosen) if chosen is not None else context_of_machine()
    if measure:
        from headway.doctor.collect.measured import measured_part  # imports torch

        path = context.get("model", {}).get("path")
        context = joined(context, measured_part(Path(path) if path else None))
    if url is None:
        return context
    found, _ = examine_server(url, Look(requests=1, api_key=api_key), context)
    return joined(context, found)


def _chosen(servers: list[ServerProcess], pid: int | None, url: str | None) -> ServerProcess | None:
    """The process asked for, else the one behind the URL, else the only one there is."""
    if pid is None:
        if url is not None:
            return server_at(parse_address(url))
        return servers[0] if len(servers) == 1 else None
    for server in servers:
        if server.pid == pid:
            return server
    listed = ", ".join(f"{server.pid} ({server.program})" for server in servers) or "none"
    raise DoctorError(f"process {pid} is no model server that runs here", reason="server_unknown", fix=f"Servers that run here: {listed}.")
