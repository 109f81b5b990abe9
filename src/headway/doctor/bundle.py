"""One archive for a bug report: what was expected, what happened, what is known. Written here, sent nowhere."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from headway.doctor.bundled_log import bundled_log
from headway.doctor.collect.assemble import as_yaml
from headway.doctor.evidence.log.request_text import CUT
from headway.doctor.evidence.masking import MASK, mask
from headway.doctor.examine import examine
from headway.doctor.report.as_json import report_object

_AROUND: Final = 48
_WORDS: Final = frozenset({"prompt", "messages", "input", "instructions", "content", "text", "tools", "output", "answer"})
_PACKED: Final = (".gz", ".xz", ".bz2")
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
        "report.md": mask(_page(expected, actual, report, request_text)),
        "context.yaml": as_yaml(context if request_text else _without_prompts(context)),
    }
    if report is not None:
        members["doctor.json"] = json.dumps(report, ensure_ascii=False, indent=2)
    for index, log in enumerate(logs):
        packed = ".txt" if log.suffix in _PACKED else ""  # it is unpacked here
        members[f"logs/{index:02}-{log.name}{packed}"] = bundled_log(log, request_text)
    return Bundle(members)


def _without_prompts(context: Mapping[str, Any]) -> dict[str, Any]:
    """Sample requests keep their timings."""
    rows = context.get("requests")
    if not isinstance(rows, list):
        return dict(context)
    kept = [{name: value for name, value in row.items() if name not in _WORDS} if isinstance(row, Mapping) else CUT for row in rows]
    return {**context, "requests": kept}


def _page(expected: str, actual: str, report: Mapping[str, Any] | None, request_text: bool) -> str:
    lines = ["# Bug report", "", "## Expected", "", expected or "(not given)", "", "## What happened instead", "", actual or "(not given)", ""]
    if report is not None:
        lines += ["## What the doctor says", "", str(report["verdict"]), ""]
        lines += [f"- {finding['rule']} {finding['title']} ({finding['confidence']}): {finding['cause']}" for finding in report["findings"]]
    lines += ["", "`context.yaml` has versions, variables, machine and model; `logs/` the logs. Secrets are masked" + (".", ", prompts left out.")[not request_text], ""]
    return "\n".join(lines)


def _places(name: str, text: str) -> Iterator[Masked]:
    start = 0
    line = 1
    while (at := text.find(MASK, start)) != -1:
        line += text.count("\n", start, at)
        yield Masked(name, line, text[max(0, at - _AROUND) : at].rpartition("\n")[2])
        start = at + len(MASK)
