"""SHA-256 of weight files, remembered so that a file of gigabytes is read once and not at every start."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from headway.artifacts.resumable_download import file_sha256


def remembered_sha256(path: Path, notes: Path) -> str:
    """Hex digest of `path`. What was found is noted in the folder `notes`, and holds while name, size, inode and both times of
    the file stay the same. Notes that cannot be read or written cost time, nothing else. Raises OSError when `path` cannot be read."""
    place = path.resolve()
    state = _state(place)
    note = notes / f"{hashlib.sha256(str(place).encode()).hexdigest()}.json"
    try:
        known: dict[str, Any] = json.loads(note.read_bytes())
        if known["state"] == state:
            return str(known["sha256"])
    except (OSError, ValueError, LookupError, TypeError):
        pass  # no note, or a damaged one: it is written again
    digest = file_sha256(place)
    if _state(place) == state:  # a file that is being written is not known yet
        with suppress(OSError):
            notes.mkdir(mode=0o700, parents=True, exist_ok=True)
            fresh = note.with_suffix(f".{os.getpid()}.new")
            fresh.write_text(json.dumps({"state": state, "sha256": digest}), encoding="utf-8")
            fresh.replace(note)
    return digest


def _state(path: Path) -> list[int]:
    status = path.stat()
    return [status.st_size, status.st_ino, status.st_mtime_ns, status.st_ctime_ns]
