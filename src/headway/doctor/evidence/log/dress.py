"""What loggers, containers and journals put around a line, taken off."""

from __future__ import annotations

import json
import re
from typing import Final

from headway.doctor.evidence.log.line import Line

_ESCAPE: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07]*\x07|\x1b[()][A-Z0-9]")
# colours whose ESC was lost on the way through a terminal or a copy
_LOST_ESCAPE: Final = re.compile(r"(?<![\w.])\[(?:\d{1,3}(?:;\d{1,3})*)?m")

# Each form is tried at the start of what is left, again and again, until none fits. A group fills the line's field of
# that name.
_FORMS: Final = tuple(
    re.compile(pattern)
    for pattern in (
        # docker compose, stern, kubectl --prefix
        r"(?P<container>[\w.\-/]{1,80}) +\| ?",
        r"\[(?:pod/)?[\w.\-/]{3,120}\] (?=\S)(?<=[\w-]\] )",
        # containerd (CRI), docker --timestamps, generic ISO
        r"(?P<clock>\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?)(?: (?:stdout|stderr) [FP])?[ :]+(?:- )?",
        # journald, syslog
        r"(?P<clock>[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?) \S+ (?P<unit>[\w.@\-/]+)(?:\[\d+\])?: ",
        # (EngineCore pid=7), (Worker_TP0 pid=7), (RayWorkerWrapper pid=7, ip=10.0.0.2), (Name pid=7) ESC-less
        r"\((?P<process>[\w.:\-]+(?: pid=\d+)(?:, ip=[\d.a-f:]+)?)\) ?",
        r"\[(?P<process>rank ?\d+)\]:? ?",
        # vLLM, Headway, SGLang: LEVEL 11-29 09:14:03 [core.py:93]
        r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL) (?P<clock>\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d+)?) \[(?P<place>[^\]\s]+)\] ?",
        r"\[(?P<clock>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d+)?)(?: (?P<process>[A-Z]{2}\d+(?: [A-Z]{2}\d+)*))?\] ",
        # python's basic format and uvicorn
        r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL):? +(?P<place>[a-z_][\w]*(?:\.\w+)+): ",
        r"(?P<level>DEBUG|INFO|WARNING|ERROR|CRITICAL): {2,}",
        # glog, torch C++: [W1129 09:14:03.123456789 file.cpp:12]
        r"\[(?P<glog>[IWEF])\d{4} (?P<clock>\d\d:\d\d:\d\d\.\d+) +(?:\d+ )?(?P<place>[\w./\-]+:\d+)\] ",
        # NCCL: host:pid:tid [0] NCCL INFO
        r"(?P<process>[\w.\-]+:\d+:\d+) \[\d+\] (?=NCCL )",
        # [TensorRT-LLM][ERROR], [TRT-LLM]
        r"\[(?:TensorRT-LLM|TRT-LLM)\](?: ?\[(?P<level>DEBUG|INFO|WARNING|ERROR)\])? ?",
    )
)
_GLOG_LEVELS: Final = {"I": "INFO", "W": "WARNING", "E": "ERROR", "F": "CRITICAL"}
_FORMS_AT_MOST: Final = 8
# members of a JSON line that hold the line of another program
_ENVELOPES: Final = ("log", "line")
_MESSAGES: Final = ("msg", "message", "event")


def undress(source: str, number: int, raw: str) -> Line:
    """One raw line (no LF) as a Line. Wrapped lines (JSON of docker, a router's log of its worker) are opened."""
    parts = {"process": "", "level": "", "place": "", "clock": ""}
    fields: dict[str, object] = {}
    text = _ESCAPE.sub("", raw)
    text = _LOST_ESCAPE.sub("", text).rstrip("\r\n")
    for _ in range(_FORMS_AT_MOST):
        text, changed = _take_off(text, parts)
        if text.startswith("{") and text.endswith("}"):
            opened = _open(text, parts, fields)
            if opened is not None:
                text, changed = opened, True
        if not changed:
            break
    return Line(source, number, parts["process"], parts["level"], parts["place"], parts["clock"], text, fields)


def _take_off(text: str, parts: dict[str, str]) -> tuple[str, bool]:
    for form in _FORMS:
        if found := form.match(text):
            for name, value in found.groupdict().items():
                if not value:
                    continue
                if name == "glog":
                    parts["level"] = _GLOG_LEVELS[value]
                elif name in ("container", "unit"):
                    parts["process"] = parts["process"] or value
                else:
                    parts[name] = value
            return text[found.end() :], True
    return text, False


def _open(text: str, parts: dict[str, str], fields: dict[str, object]) -> str | None:
    """The message inside a JSON line, its members noted; None when it is not a log's JSON."""
    try:
        members = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(members, dict):
        return None
    inner = _first_text(members, _ENVELOPES)
    message = _first_text(members, _MESSAGES)
    if inner is None and message is None:
        return None
    fields.update(members)
    parts["level"] = _level(members.get("level", members.get("severity", "")), parts["level"])
    parts["clock"] = parts["clock"] or str(members.get("ts", members.get("time", "")))
    if inner is not None:
        parts["process"] = str(members.get("deployment", parts["process"]))
        return inner.rstrip("\n")
    rest = ", ".join(f"{name}={value}" for name, value in members.items() if name not in _DULL)
    return f"{message} {rest}" if rest else message


_DULL: Final = frozenset({"level", "severity", "ts", "time", "timestamp", "msg", "message", "event", "stream"})


def _first_text(members: dict[str, object], names: tuple[str, ...]) -> str | None:
    return next((value for name in names if isinstance(value := members.get(name), str)), None)


def _level(value: object, before: str) -> str:
    word = str(value).upper()
    return {"WARN": "WARNING", "FATAL": "CRITICAL"}.get(word, word) if word.isalpha() else before


