"""One archive for a bug report: what was expected, what happened, what is known. Written here, sent nowhere."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from headway.doctor.collect.assemble import as_yaml
from headway.doctor.evidence.log.request_text import without_request_text
from headway.doctor.evidence.masking import MASK, mask
from headway.doctor.examine import examine
from headway.doctor.report.as_json import report_object
from headway.errors import DoctorError

_HEAD_BYTES: Final = 2 << 20
_TAIL_BYTES: Final = 18 << 20
_AROUND: Final = 48
_TIME: Final = (2026, 1, 1, 0, 0, 0)  # in the archive, so that the same input gives the same bytes


@dataclass(frozen=True, slots=True)
class Masked:
    """One place where a value was replaced: `before` is what stands in front of it."""

    file: str
    line: int
    before: str


@dataclass(frozen=True, slots=True)
class Bundle:
    """`members`: name -> text, all masked."""

    members: Mapping[str, str]

    def masked(self) -> list[Masked]:
        """Every replaced value, for a person to look through before the archive is given away."""
        return [found for name, text in self.members.items() for found in _places(name, text)]

    def write(self, path: Path) -> None:
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in self.members.items():
                archive.writestr(zipfile.ZipInfo(name, _TIME), text.encode("utf-8"), zipfile.ZIP_DEFLATED)


def make_bundle(
    expected: str, actual: str, context: Mapping[str, Any], logs: Sequence[Path], context_file: Path | None, *, request_text: bool = False
) -> Bundle:  # fmt: skip
    """`context`: what was collected here. `request_text`: keep prompts and answers that stand in the logs.

    Raises DoctorError when a file cannot be read.
    """
    report = report_object(examine(logs, context_file).report, "en") if logs else None
    members = {
        "report.md": mask(_page(expected, actual, report)),
        "context.yaml": as_yaml(context),
    }
    if report is not None:
        members["doctor.json"] = json.dumps(report, ensure_ascii=False, indent=2)
    for index, log in enumerate(logs):
        members[f"logs/{index:02}-{log.name}"] = _log(log, request_text)
    return Bundle(members)


def _page(expected: str, actual: str, report: Mapping[str, Any] | None) -> str:
    lines = ["# Bug report", "", "## Expected", "", expected or "(not given)", "", "## What happened instead", "", actual or "(not given)", ""]
    if report is not None:
        lines += ["## What the doctor says", "", str(report["verdict"]), ""]
        lines += [f"- {finding['rule']} {finding['title']} ({finding['confidence']}): {finding['cause']}" for finding in report["findings"]]
    lines += ["", "`context.yaml` has versions, variables, machine and model; `logs/` the logs. Secrets are masked, prompts left out.", ""]
    return "\n".join(lines)


def _log(path: Path, request_text: bool) -> str:
    """A log whole, or its beginning and end when it is large; masked, without the users' words unless asked for."""
    try:
        with path.open("rb") as stream:
            text = _both_ends(stream, path.stat().st_size)
    except OSError as error:
        raise DoctorError(f"the log {path} cannot be read: {error}", reason="log_unreadable", fix="Give the path of a text file.") from error
    if not request_text:
        text = "\n".join(without_request_text(line) for line in text.split("\n"))
    return mask(text)


def _both_ends(stream: IO[bytes], size: int) -> str:
    if size <= _HEAD_BYTES + _TAIL_BYTES:
        return stream.read().decode("utf-8", "replace")
    head = stream.read(_HEAD_BYTES)
    stream.seek(size - _TAIL_BYTES)
    tail = stream.read()
    head, tail = head[: head.rfind(b"\n") + 1], tail[tail.find(b"\n") + 1 :]
    left_out = size - len(head) - len(tail)
    return head.decode("utf-8", "replace") + f"[... {left_out} bytes left out ...]\n" + tail.decode("utf-8", "replace")


def _places(name: str, text: str) -> Iterator[Masked]:
    start = 0
    line = 1
    while (at := text.find(MASK, start)) != -1:
        line += text.count("\n", start, at)
        yield Masked(name, line, text[max(0, at - _AROUND) : at].rpartition("\n")[2])
        start = at + len(MASK)
