"""The folder in which a checkpoint grows, and what is remembered so that an interrupted run goes on where it was.

`OUTPUT.part/checkpoint` becomes `OUTPUT` in one step at the end. `state.json` names what the run is made of; a file counts once it is in it.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from filelock import FileLock, Timeout

from headway.errors import ConfigError

_FORMAT: Final = 1


class WorkFolder:
    """Of the output folder `output`. Use `opened`."""

    def __init__(self, output: Path):
        self.output = output
        self.path = output.with_name(f"{output.name}.part")
        self.checkpoint = self.path / "checkpoint"
        self._state = self.path / "state.json"

    @contextmanager
    def opened(self) -> Iterator[WorkFolder]:
        """Only one process at a time. Raises ConfigError (`output_exists`, `output_busy`, `output_unwritable`)."""
        if self.output.exists() or self.output.is_symlink():
            raise ConfigError(
                f"{self.output} is there already, and nothing is overwritten", reason="output_exists", param="output",
                fix="Name another folder with --output, or remove it.",
            )  # fmt: skip
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(
                f"{self.path} cannot be made: {error.strerror}", reason="output_unwritable", param="output",
                fix="Name a folder that can be written with --output.",
            ) from None  # fmt: skip
        lock = FileLock(self.path / "lock")
        try:
            lock.acquire(timeout=0)
        except Timeout:
            raise ConfigError(
                f"another process is writing {self.output}", reason="output_busy", param="output", fix="Wait for it, or name another folder."
            ) from None
        try:
            yield self
        finally:
            if self.path.exists() and {entry.name for entry in self.path.iterdir()} <= {"lock"}:  # refused before anything was written
                shutil.rmtree(self.path)
            lock.release()

    def begin(self, digest: str) -> list[dict[str, Any]] | None:
        """What was finished by a run with the same `digest`, in order; None = another run was here, and all it left was thrown away."""
        known = self._read()
        if known is not None and known.get("digest") == digest and known.get("format") == _FORMAT:
            return list(known["done"])
        there = [entry for entry in self.path.iterdir() if entry.name != "lock"]
        if there and known is None and not all(entry.name in ("checkpoint", "state.growing") for entry in there):
            raise ConfigError(
                f"{self.path} is there and was not made by `headway quantize`", reason="output_exists", param="output",
                fix="Name another folder with --output, or remove it.",
            )  # fmt: skip
        for entry in there:
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        self.checkpoint.mkdir()
        self.remember(digest, [])
        return None if known is not None else []

    def remember(self, digest: str, done: list[dict[str, Any]]) -> None:
        """Written under another name first, so that it is whole whenever the run ends."""
        growing = self._state.with_suffix(".growing")
        with growing.open("w", encoding="utf-8") as file:
            json.dump({"format": _FORMAT, "digest": digest, "done": done}, file)
            file.flush()
            os.fsync(file.fileno())
        growing.replace(self._state)

    def finish(self) -> None:
        """The checkpoint takes its name; nothing else is left."""
        self.checkpoint.rename(self.output)
        shutil.rmtree(self.path)

    def _read(self) -> dict[str, Any] | None:
        try:
            found = json.loads(self._state.read_bytes())
        except (OSError, ValueError):
            return None
        return found if isinstance(found, dict) else None
