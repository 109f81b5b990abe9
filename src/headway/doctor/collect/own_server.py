"""How to ask a server that runs on this machine: its address, and the key it was started with."""

from __future__ import annotations

from headway.doctor.collect.environment import process_environment
from headway.doctor.collect.processes import ServerProcess
from headway.doctor.facts.launch import command_flags


def own_url(server: ServerProcess) -> str:
    """`http://127.0.0.1:8000`, or https, or another address where it listens on that only; "" when it listens on no port.

    Of several ports the one that was asked for is the server's; the others belong to its workers.
    """
    flags = dict(command_flags(server.command))
    asked = flags.get("port", "")
    port = int(asked) if asked.isdecimal() and int(asked) in server.ports else next(iter(server.ports), None)
    if port is None:
        return ""
    host = flags.get("host", "")
    reached = host if host not in ("", "0.0.0.0", "::", "localhost", "True") else "127.0.0.1"
    scheme = "https" if "ssl_keyfile" in flags or "ssl_key_file" in flags else "http"
    return f"{scheme}://[{reached}]:{port}" if ":" in reached else f"{scheme}://{reached}:{port}"


def own_key(server: ServerProcess) -> str | None:
    """The first key it accepts, from its command or its environment. It is sent to that server and written nowhere."""
    given = dict(command_flags(server.command)).get("api_key")
    return given or process_environment(server.pid).get("VLLM_API_KEY") or None
