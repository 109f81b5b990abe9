"""Every run is written down at once, so that a tuning that was stopped goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from headway.doctor.tune.outcome import Outcome
from headway.doctor.tune.setting import Setting
from headway.errors import ConfigError


class Record:
    """A file of JSON lines: what is tuned, then one line a run. Runs of an earlier start are handed out again, in order,
    before anything is measured."""

    def __init__(self, path: Path, identity: Mapping[str, Any]):
        """`identity`: everything that makes runs comparable (model, load, host, command).

        Raises ConfigError (`record_of_another_tuning`) when the file has another one.
        """
        self._path = path
        self._kept: dict[Setting, list[Outcome]] = {}
        self.details: list[tuple[Setting, dict[str, Any]]] = []
        lines = path.read_text("utf-8").splitlines() if path.exists() else []
        if not lines:
            path.write_text(json.dumps({"tuning": dict(identity)}) + "\n", "utf-8")
            return
        try:
            known = json.loads(lines[0])["tuning"]
        except (ValueError, KeyError, TypeError):
            known = None
        if known != json.loads(json.dumps(dict(identity))):
            raise ConfigError(
                f"{path} is the record of another tuning", reason="record_of_another_tuning", param="record", fix="Give another --record, or delete the file."
            )
        for line in lines[1:]:
            self._take(line)

    def _take(self, line: str) -> None:
        try:
            run = json.loads(line)
            setting = tuple((str(name), str(value)) for name, value in run["setting"])
            self._kept.setdefault(setting, []).append(Outcome(**run["outcome"]))
            self.details.append((setting, dict(run["details"])))
        except (ValueError, KeyError, TypeError):
            return  # the last line of a process that was killed while it wrote

    def __len__(self) -> int:
        """Runs that are still to be handed out."""
        return sum(map(len, self._kept.values()))

    def next(self, setting: Setting) -> Outcome | None:
        runs = self._kept.get(setting)
        return runs.pop(0) if runs else None

    def add(self, setting: Setting, outcome: Outcome, details: Mapping[str, Any]) -> None:
        self.details.append((setting, dict(details)))
        with self._path.open("a", encoding="utf-8") as stream:
            stream.write(json.dumps({"setting": setting, "outcome": asdict(outcome), "details": dict(details)}) + "\n")
