"""How to ask a server that runs on this machine: its address, and the key it was started with."""

from __future__ import annotations

from typing import Final

from headway.doctor.collect.environment import process_environment
from headway.doctor.collect.processes import ServerProcess
from headway.doctor.facts.launch import command_flags

_USUAL_PORTS: Final = {"vllm": 8000, "headway": 8000, "llama.cpp": 8080, "sglang": 30000, "tensorrt-llm": 8000}


def own_url(server: ServerProcess) -> str:
    """`http://127.0.0.1:8000`, or https, or another address where it listens on that only; "" when it listens on no port."""
    flags = dict(command_flags(server.command))
    port = own_port(server)
    if port is None:
        return ""
    host = flags.get("host", "")
    reached = host if host not in ("", "0.0.0.0", "::", "localhost", "True") else "127.0.0.1"
    scheme = "https" if "ssl_keyfile" in flags or "ssl_key_file" in flags else "http"
    return f"{scheme}://[{reached}]:{port}" if ":" in reached else f"{scheme}://{reached}:{port}"


def own_port(server: ServerProcess) -> int | None:
    """Of several ports the one that was asked for, else the usual one; the others belong to its workers. None without any."""
    asked = dict(command_flags(server.command)).get("port", "")
    for port in (int(asked) if asked.isdecimal() else None, _USUAL_PORTS.get(server.program)):
        if port in server.ports:
            return port
    return next(iter(server.ports), None)


def own_key(server: ServerProcess) -> str | None:
    """The first key it accepts, from its command or its environment. It is sent to that server and written nowhere."""
    given = dict(command_flags(server.command)).get("api_key")
    return given or process_environment(server.pid).get("VLLM_API_KEY") or None
