"""Exceptions in a log: which came first in each process, and which only say that something else failed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.log.log import Log
from headway.doctor.evidence.sight import sight

EXCEPTION: Final = sight(
    "Error", "Exception", "Interrupt", "SystemExit", pattern=r"^(?P<type>[A-Za-z_][\w.]*(?:Error|Exception|Interrupt|Exit))(?:\([\w.]+\))?(?:: (?P<message>.*))?$"
)
UMBRELLA: Final = sight(
    "Engine core initialization failed",
    "WorkerProc initialization failed",
    "EngineDeadError",
    "EngineCore encountered a fatal error",
    "EngineCore failed to start",
    "RayTaskError",
    "ActorDiedError",
    "Failed core proc",
    "Engine process failed to start",
    "Engine loop has died",
    "please check the stack trace above for the root cause",
    "leaked semaphore",
    "leaked shared_memory",
)
# how a process ends because somebody or something else wanted it
_STOPPED: Final = ("KeyboardInterrupt", "SystemExit", "CancelledError")
STOP: Final = sight("trigger received signal=SIG", pattern=r"\[shutdown\] \w+: trigger received signal=(?P<signal>SIG\w+)")
FAILED_PROCESSES: Final = sight("Failed core proc", pattern=r"Failed core proc\(s\): (?P<codes>\{[^}]*\})")
SIGHTS: Final = (EXCEPTION, UMBRELLA, STOP, FAILED_PROCESSES)


@dataclass(frozen=True, slots=True)
class Exceptions:
    """`first`: the first exceptions in time that are no umbrellas, one per process: of a chain of exceptions ("direct
    cause", "during handling") that is the cause. `umbrellas`: lines that only point elsewhere. What stands behind `stopped`, the line
    that says that a signal asked the server to end, belongs to its end and is neither. `codes`: process name -> exit code of
    `Failed core proc(s)`; a negative code is a signal."""

    first: tuple[Hit, ...]
    umbrellas: tuple[Hit, ...]
    codes: dict[str, int]
    stopped: Hit | None = None


def exceptions_of(log: Log) -> Exceptions:
    stopped = log.first(STOP)
    umbrellas = tuple(hit for hit in log.hits(UMBRELLA) if not _behind(hit, stopped))
    pointing = {(hit.line.source, hit.line.number) for hit in umbrellas}
    first: dict[str, Hit] = {}
    for hit in log.hits(EXCEPTION):
        if (hit.line.source, hit.line.number) not in pointing and not hit["type"].endswith(_STOPPED) and not _behind(hit, stopped):
            first.setdefault(hit.line.process, hit)
    codes: dict[str, int] = {}
    for hit in log.hits(FAILED_PROCESSES):
        codes |= _codes(hit["codes"])
    return Exceptions(tuple(first.values()), umbrellas, codes, stopped)


def _behind(hit: Hit, stopped: Hit | None) -> bool:
    return stopped is not None and hit.line.source == stopped.line.source and hit.line.number > stopped.line.number


def _codes(text: str) -> dict[str, int]:
    """`{'EngineCore_0': -9}` as a dict."""
    codes: dict[str, int] = {}
    for pair in text.strip("{}").split(","):
        name, _, code = pair.rpartition(":")
        if name and code.strip().lstrip("-").isdigit():
            codes[name.strip(" '\"")] = int(code)
    return codes
