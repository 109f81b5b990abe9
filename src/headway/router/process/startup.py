"""Startup: how far the router is with its first configuration, told over HTTP, in a file and to whoever waits in a terminal."""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

_log = logging.getLogger(__name__)
FILE_NAME = "router-runtime.json"


@dataclass(frozen=True, slots=True)
class StartupStatus:
    """`phase`: starting, loading_model_deployments, ready, stopping, error. `deployments` has one entry for each model deployment with its `name`,
    `artifact`, `state` and `reason`."""

    phase: str = "starting"
    message: str = "Reading the configuration"
    deployments: tuple[Mapping[str, Any], ...] = ()
    updated: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def ready(self) -> bool:
        return self.phase == "ready"

    def document(self) -> dict[str, Any]:
        """The body of `/startup-status`."""
        waiting = [str(each["name"]) for each in self.deployments if each["state"] != "ready"]
        return {
            "phase": self.phase,
            "ready": self.ready,
            "message": self.message,
            "downloading_model": next((str(each["name"]) for each in self.deployments if each["state"] == "downloading"), ""),
            "pending_models": waiting,
            "ready_models": len(self.deployments) - len(waiting),
            "total_models": len(self.deployments),
            "model_deployments": [dict(each) for each in self.deployments],
            "updated_at": self.updated.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        }


class Startup:
    """Holds the status; each change goes to the file, and each new message but errors to `say`. A file that cannot be written is logged once."""

    def __init__(self, file: Path, say: Callable[[str], None]) -> None:
        self._file, self._say = file, say
        self._complained = False
        self.status = StartupStatus()

    def enter(self, phase: str, message: str, deployments: tuple[Mapping[str, Any], ...] | None = None) -> None:
        known = self.status.deployments if deployments is None else deployments
        before = self.status
        if (phase, message, known) == (before.phase, before.message, before.deployments):
            return
        self.status = replace(before, phase=phase, message=message, deployments=known, updated=datetime.now(UTC))
        if message != before.message and phase != "error":  # an error ends the program, which says it then
            self._say(message)
        self._write()

    def end(self) -> None:
        """The process ends: the file would tell of a router that is gone."""
        with contextlib.suppress(OSError):  # where it could not be written, as on a volume that is read-only, there is nothing to remove
            self._file.unlink(missing_ok=True)

    def _write(self) -> None:
        beside = self._file.with_name(f".{self._file.name}.{os.getpid()}")
        try:
            beside.write_text(json.dumps({**self.status.document(), "pid": os.getpid()}), encoding="utf-8")
            beside.replace(self._file)
        except OSError as error:
            if not self._complained:
                self._complained = True
                _log.warning("%s cannot be written (%s): whoever reads it will not see the start", self._file.name, error.strerror)
