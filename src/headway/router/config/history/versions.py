"""VersionStore: the last ten configurations that served, on disk."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Final, Literal

import orjson

from headway.errors import ConfigError, NotFoundError

KEPT: Final = 10
Origin = Literal["file", "api", "rollback"]
_NAME = re.compile(r"(\d{6,})\.json")


class StaleError(ConfigError):
    """Somebody else changed the configuration after it was read."""

    reason = "config_stale"


@dataclass(frozen=True, slots=True)
class Version:
    """`number` counts from 1 and never comes twice. `restored` is the version that a rollback brought back."""

    number: int
    created_at: str
    etag: str
    origin: Origin
    yaml: str
    restored: int | None = None


def etag_of(text: str) -> str:
    """The ETag of a text, with its quotes; comments count."""
    return f'"{sha256(text.encode()).hexdigest()[:32]}"'


class VersionStore:
    """One JSON file for each version in a private folder. One process writes."""

    def __init__(self, folder: Path):
        self._folder = folder

    def versions(self) -> Sequence[Version]:
        """Newest first. Files that cannot be read are left out."""
        return [version for path in reversed(self._files()) if (version := _read(path)) is not None]

    def get(self, number: int) -> Version:
        """Raises NotFoundError."""
        version = _read(self._path(number))
        if version is None:
            fix = "`vllm-sr config versions` lists those that are kept."
            raise NotFoundError(f"configuration version {number} is not kept", reason="config_version_unknown", fix=fix)
        return version

    def latest(self) -> Version | None:
        return next(iter(self.versions()), None)

    def record(self, text: str, origin: Origin, restored: int | None = None) -> Version:
        """A new version, unless `text` is the latest one already (a rollback is always a new one); the oldest beyond ten goes."""
        latest = self.latest()
        if latest is not None and latest.yaml == text and origin != "rollback":
            return latest
        files = self._files()
        number = 1 + max((int(path.stem) for path in files), default=0)
        now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        version = Version(number, now, etag_of(text), origin, text, restored)
        self._write(version)
        for path in self._files()[:-KEPT]:
            path.unlink(missing_ok=True)
        return version

    def _files(self) -> list[Path]:
        """Oldest first."""
        if not self._folder.is_dir():
            return []
        return sorted((path for path in self._folder.iterdir() if _NAME.fullmatch(path.name)), key=lambda path: int(path.stem))

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:06d}.json"

    def _write(self, version: Version) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_private(self._path(version.number), orjson.dumps(asdict(version)))


def write_private(path: Path, content: bytes, mode: int = 0o600) -> None:
    """Replace the file at once, so that a reader sees the old or the new one; only the owner may read it, for it may hold keys."""
    fresh = path.with_name(f".{path.name}.{os.getpid()}.new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
    except BaseException:
        fresh.unlink(missing_ok=True)
        raise


def _read(path: Path) -> Version | None:
    try:
        return Version(**orjson.loads(path.read_bytes()))
    except (OSError, TypeError, ValueError):
        return None
