"""What loggers, terminals, containers and journals put around each line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from random import Random

Dress = Callable[[int, str], str]
_DRESSED = re.compile(r"(?m)^ *[\w-]+ +\| |^\d{4}-\d\d-\d\dT[\d:.]+Z std(?:out|err) ")


def _clock(index: int) -> str:
    return f"{9 + index // 3600:02}:{index // 60 % 60:02}:{index % 60:02}"


DRESSES: dict[str, Dress] = {
    "plain": lambda _, line: line,
    "journald": lambda index, line: f"Mar  4 {_clock(index)} gpu-node-3 vllm[81{index % 7}2]: {line}",
    "journald iso": lambda index, line: f"2026-03-04T{_clock(index)}+0100 gpu-node-3 python3[8112]: {line}",
    "compose": lambda _, line: f"inference-1  | {line}",
    "docker timestamps": lambda index, line: f"2026-03-04T{_clock(index)}.{index * 7919 % 10**9:09}Z {line}",
    "cri": lambda index, line: f"2026-03-04T{_clock(index)}.{index * 7919 % 10**9:09}+01:00 stderr F {line}",
    "docker json": lambda index, line: json.dumps({"log": line + "\n", "stream": "stderr", "time": f"2026-03-04T{_clock(index)}.5Z"}),
    "stern": lambda _, line: f"llm-7d9fbb5c4d-x2x7k server {line}",
    "kubectl prefix": lambda _, line: f"[pod/llm-7d9fbb5c4d-x2x7k/server] {line}",
    "kubectl prefix timestamps": lambda index, line: f"[pod/llm-0/server] 2026-03-04T{_clock(index)}.123456789Z {line}",
}


def is_dressed(lines: list[str]) -> bool:
    return len(_DRESSED.findall("\n".join(lines))) > len(lines) / 4


def dressed(lines: list[str], random: Random) -> list[str]:
    """All lines in one dress; logs that wear one already keep it."""
    if is_dressed(lines):
        return lines
    dress = DRESSES[random.choice(list(DRESSES))]
    return [dress(index, line) for index, line in enumerate(lines)]


_LEVEL = re.compile(r"\b(DEBUG|INFO|WARNING|ERROR|CRITICAL)(?=:? )")
_PROCESS = re.compile(r"^(\((?:[A-Z]\w+) pid=\d+\))")
_COLOURS = {"DEBUG": "36", "INFO": "32", "WARNING": "33;1", "ERROR": "31;1", "CRITICAL": "35"}


def coloured(lines: list[str]) -> list[str]:
    """As a terminal sees them."""
    return [_LEVEL.sub(_level, _PROCESS.sub("\x1b[1;36m\\1\x1b[0;0m", line), count=1) if "\x1b" not in line else line for line in lines]


def _level(found: re.Match[str]) -> str:
    return f"\x1b[{_COLOURS[found[1]]}m{found[1]}\x1b[0m"
