"""What loggers, containers and journals put around a line, taken off."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final

from headway.doctor.evidence.log.forms import BY_FIRST, GLOG_LEVELS, LEVELS
from headway.doctor.evidence.log.line import Line

_ESCAPE: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][A-Z0-9]")
# colours whose ESC was lost on the way through a terminal or a copy
_LOST_ESCAPE: Final = re.compile(r"(?:\u241b|\^\[|\\u001[bB]|\\x1[bB]|\\033)\[[0-9;]*m|\[\d{1,3}(?:;\d{1,3}){0,4}m")
_FORMS_AT_MOST: Final = 10
# members of a JSON line that hold the line of another program
_ENVELOPES: Final = ("log", "line", "MESSAGE", "textPayload")
_MESSAGES: Final = ("msg", "message", "event")
_LEVEL_NAMES: Final = ("level", "severity", "levelname", "lvl")
_CLOCK_NAMES: Final = ("ts", "time", "timestamp", "asctime", "@timestamp")
_OWNERS: Final = ("deployment", "container_name", "containerName", "podName", "_SYSTEMD_UNIT", "CONTAINER_NAME")
# members that say nothing, or hold the users' words
_LEFT_OUT: Final = frozenset(
    {*_LEVEL_NAMES, *_CLOCK_NAMES, "stream", "labels", "kubernetes"}
    | {"prompt", "prompts", "messages", "content", "input", "inputs", "output", "outputs", "text", "texts", "body", "request_body"}
    | {"response_body", "completion", "query", "question", "answer", "instructions", "document", "documents"}
)


def undress(source: str, number: int, raw: str) -> Line:
    """One raw line (no LF) as a Line. Wrapped lines (JSON of docker, a router's log of its worker) are opened."""
    parts = {"process": "", "level": "", "place": "", "clock": "", "container": ""}
    fields: dict[str, object] = {}
    text = _uncoloured(raw).rstrip("\r\n")
    for _ in range(_FORMS_AT_MOST):
        text, changed = _take_off(text, parts)
        if text.startswith("{") and text.endswith("}"):
            opened = _open(text, parts, fields)
            if opened is not None:
                text, changed = _uncoloured(opened), True
        if not changed:
            break
    process = parts["process"] or parts["container"]
    return Line(source, number, process, parts["level"], parts["place"], parts["clock"], text, fields, parts["container"], raw)


def _uncoloured(text: str) -> str:
    if "\x1b" in text:
        text = _ESCAPE.sub("", text)
    return _LOST_ESCAPE.sub("", text) if "[" in text else text


def _take_off(text: str, parts: dict[str, str]) -> tuple[str, bool]:
    if not text:
        return text, False
    # torchrun puts a rank before whatever a process prints
    logged = bool(parts["level"] or parts["place"] or parts["process"].rstrip("0123456789 ") not in ("", "rank"))
    for form in BY_FIRST.get(text[0], ()):
        if (form.outside and logged) or (form.after_clock and not parts["clock"]):
            continue
        if found := form.pattern.match(text):
            for name, value in zip(form.names, found.groups(), strict=True):
                if not value:
                    continue
                if name == "glog":
                    parts["level"] = GLOG_LEVELS[value]
                elif name == "level":
                    parts["level"] = LEVELS.get(value.upper(), value.upper())
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
    told_as = next((name for name in _MESSAGES if isinstance(members.get(name), str)), "")
    message = str(members[told_as]) if told_as else None
    if inner is None and message is None:
        return None
    parts["level"] = _level(members, parts["level"])
    parts["clock"] = parts["clock"] or _first_text(members, _CLOCK_NAMES) or ""
    owner = _first_text(members, _OWNERS)
    if inner is not None:
        if message is not None:  # a router's line about its worker; a container's envelope says nothing of its own
            fields.update(members)
            parts["process"] = owner or parts["process"]
        elif owner:
            parts["container"] = parts["container"] or owner
        return inner.rstrip("\r\n")
    fields.update(members)
    rest = ", ".join(f"{name}={value}" for name, value in members.items() if name not in _LEFT_OUT and name != told_as)
    return f"{message} {rest}" if rest else message


def _first_text(members: Mapping[str, object], names: tuple[str, ...]) -> str | None:
    return next((value for name in names if isinstance(value := members.get(name), str)), None)


def _level(members: Mapping[str, object], before: str) -> str:
    word = (_first_text(members, _LEVEL_NAMES) or "").upper()
    return LEVELS.get(word, before)
