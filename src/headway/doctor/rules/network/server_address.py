"""Where the server of the case listens, and who stands on a port, as log, command and context say it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.sight import sight
from headway.doctor.facts.startup import STAGES

LISTENING: Final = sight(
    "server on http",
    "Uvicorn running on",
    "server is listening on",
    "HTTP server listening",
    "Listening on http",
    pattern=r"(?:server on|running on|listening on|Listening on) https?://(?P<host>\[[^\]]+\]|[^:/\s]+):(?P<port>\d+)",
)
_DEFAULT_PORTS: Final = {
    "vllm": 8000,
    "headway": 8000,
    "vllm-srun": 8100,
    "vllm-sr": 8899,
    "llama.cpp": 8080,
    "sglang": 30000,
    "tensorrt-llm": 8000,
}


@dataclass(frozen=True, slots=True)
class Listener:
    """A member of `host.listeners`; `place` is its path in the context."""

    port: int
    address: str
    pid: int | None
    command: str
    age_s: float | None
    place: str


def listeners(case: Case) -> list[Listener]:
    found = []
    for index, member in enumerate(case.context.items("host.listeners")):
        if isinstance(member, Mapping) and (port := case.context.number(f"host.listeners.{index}.port")) is not None:
            pid = case.context.number(f"host.listeners.{index}.pid")
            age = case.context.number(f"host.listeners.{index}.age_s")
            address = str(member.get("address") or member.get("host") or "")
            found.append(
                Listener(
                    int(port),
                    address,
                    None if pid is None else int(pid),
                    str(member.get("command") or member.get("process") or ""),
                    age,
                    f"host.listeners.{index}",
                )
            )
    return found


def listener_on(case: Case, port: int) -> Listener | None:
    return next((listener for listener in listeners(case) if listener.port == port), None)


def free_port_after(case: Case, port: int) -> int:
    """The next port that nobody is known to listen on."""
    taken = {listener.port for listener in listeners(case)}
    return next(number for number in range(port + 1, 65536) if number not in taken)


def bound(case: Case) -> tuple[str, int, Hit] | None:
    """Host, port and line of the last address that the server printed."""
    hit = case.log.last(LISTENING)
    return (hit["host"].strip("[]"), int(hit["port"]), hit) if hit else None


def port_of(case: Case) -> int:
    """What the server printed, else what it was told, else its default."""
    if here := bound(case):
        return here[1]
    told = case.launch.number("port")
    return int(told) if told else _DEFAULT_PORTS.get(case.launch.program, 8000)


def served_at(case: Case) -> str:
    """An address to call from the server's own machine, or the one that was asked."""
    if asked := case.context.text("endpoint.url"):
        return asked
    here = bound(case)
    host = here[0] if here and here[0] not in ("0.0.0.0", "::", "") else "127.0.0.1"
    return f"http://{f'[{host}]' if ':' in host else host}:{port_of(case)}"


def ready_line(case: Case) -> Hit | None:
    """The last line that says that the server takes requests."""
    return case.log.last(STAGES["ready"], STAGES["listening"])


def server_log_is_there(case: Case) -> bool:
    """The log shows the start of a server, not only its callers."""
    return bool(case.startup.stage) or case.launch.program != ""


def port_in(text: str) -> int | None:
    """The port of an address in a message, None when it has none."""
    found = re.search(r"(?:port[= :]+|:)(\d{2,5})\b", text)
    return int(found[1]) if found and 0 < int(found[1]) < 65536 else None
