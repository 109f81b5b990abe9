"""Plan: what a change would do, before anything is done."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from headway.router.config.diagnostics import Diagnostic
from headway.router.config.history.changes import Change, changes, restart_required
from headway.router.config.history.merge import merged_text
from headway.router.config.history.versions import etag_of
from headway.router.config.load import Examined, Source, examine
from headway.router.config.normal_form import masked, normal_form, to_yaml

Mode = Literal["replace", "merge"]


@dataclass(frozen=True, slots=True)
class Plan:
    """`text` is the configuration as it would be. `restart` says why the running process cannot take it; empty when it can."""

    mode: Mode
    current_etag: str
    text: str
    diagnostics: tuple[Diagnostic, ...]
    changes: tuple[Change, ...]
    restart: tuple[str, ...]
    diff: str
    masked_diff: str

    @property
    def valid(self) -> bool:
        return all(each.severity != "error" for each in self.diagnostics)

    @property
    def changed(self) -> bool:
        return bool(self.diff)

    def as_json(self, *, secrets: bool = False) -> dict[str, Any]:
        """Without `secrets`, the diff is that of the normal forms with secrets hidden."""
        return {
            "mode": self.mode,
            "valid": self.valid,
            "changed": self.changed,
            "current_etag": self.current_etag,
            "planned_etag": etag_of(self.text),
            "changes": [{"kind": each.kind, "path": each.path} for each in self.changes],
            "restart_required": list(self.restart),
            "diagnostics": [each.as_json() for each in self.diagnostics],
            "diff": self.diff if secrets else self.masked_diff,
        }


def plan(current: str, given: str, mode: Mode, environment: Mapping[str, str] | None = None, folder: Path | None = None) -> Plan:
    """`folder` is that of the configuration's file. Raises ConfigError for a patch that cannot be read; what is wrong with the result is in `diagnostics`."""
    text = merged_text(current, given) if mode == "merge" else given
    before, after = (
        examine(Source(current, "active", folder), environment),
        examine(Source(text, "planned", folder), environment),
    )
    return Plan(
        mode=mode,
        current_etag=etag_of(current),
        text=text,
        diagnostics=after.diagnostics,
        changes=tuple(_changes(before, after)),
        restart=tuple(_restart(before, after)),
        diff=diff(current, text),
        masked_diff=diff(_shown(before), _shown(after)),
    )


def diff(before: str, after: str, names: tuple[str, str] = ("active", "planned")) -> str:
    """A unified diff; empty when the texts are equal."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), *names, lineterm="")
    return "".join(f"{line}\n" for line in lines)


def _shown(examined: Examined) -> str:
    return to_yaml(masked(normal_form(examined.document))) if examined.document else ""


def _changes(before: Examined, after: Examined) -> list[Change]:
    return changes(before.document, after.document) if before.document and after.document else []


def _restart(before: Examined, after: Examined) -> list[str]:
    return restart_required(before.document, after.document) if before.document and after.document else []
