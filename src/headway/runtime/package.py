"""Package: the files of one model on this machine, seen without loading a weight."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from headway.artifacts.bounded_json import read_json_object


@dataclass(frozen=True)
class Package:
    """`path` is a folder, or one file (`.gguf`, `.sparrow`). `repo` and `revision` are None for local packages."""

    reference: str
    path: Path
    repo: str | None = None
    revision: str | None = None
    licence: str | None = None
    _json: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def is_folder(self) -> bool:
        return self.path.is_dir()

    def has(self, name: str) -> bool:
        """Whether the folder holds a regular file of that relative name."""
        return self.is_folder and (self.path / name).is_file()

    def json(self, name: str) -> dict[str, Any] | None:
        """The JSON object in a small file of the folder, or None when there is no such file. Read once.

        Raises ArtifactError (`invalid_json`) for what is no JSON object.
        """
        if name not in self._json:
            self._json[name] = read_json_object(self.path / name) if self.has(name) else None
        found: dict[str, Any] | None = self._json[name]
        return found

    @property
    def config(self) -> dict[str, Any]:
        """config.json, or {}."""
        return self.json("config.json") or {}
