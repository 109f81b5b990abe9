"""`$HEADWAY_CACHE/evaluations`: what baselines said, found by the digest of everything that it follows from; the least recently used go."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import torch

from headway.artifacts.remembered_digests import remembered_sha256
from headway.errors import ArtifactError
from headway.evaluation.record import Record, read_record
from headway.evaluation.scoring import ScoringRequest
from headway.evaluation.subject import Subject
from headway.host.instruction_set import instruction_set
from headway.kernels.choice import default_kernels
from headway.version import __version__

_log = logging.getLogger(__name__)
SCORING: Final = 1
"""Raise it with every change that changes numbers."""
MOST_BYTES: Final = 4 << 30
_STALE_SECONDS: Final = 86_400.0


@dataclass(frozen=True, slots=True)
class BaselineCache:
    """Records in `folder`, of at most `most` bytes together."""

    folder: Path
    most: int = MOST_BYTES

    def find(self, key: str, requests: Sequence[ScoringRequest]) -> Record | None:
        """A damaged record is removed."""
        place = self.folder / key
        try:
            record = read_record(place, [len(request.targets) for request in requests])
        except FileNotFoundError:
            return None
        except (ArtifactError, OSError) as error:
            _log.warning("a kept evaluation cannot be used and is made again: %s", error)
            shutil.rmtree(place, ignore_errors=True)
            return None
        with contextlib.suppress(OSError):  # a read-only cache
            os.utime(place)
        return record

    def new_place(self, key: str) -> Path:
        """Where a record may grow until `keep`."""
        return self.folder / f"{key}.{os.getpid()}.part"

    def keep(self, key: str, record: Record) -> Record:
        """Give it its name, and make room. What others kept meanwhile stays. A record that alone is too large lives until `sweep`."""
        place = self.folder / key
        try:
            if _size(record.folder) > self.most:
                return record
            record.folder.rename(place)
        except OSError:  # somebody else was first
            return record
        self._make_room(place)
        return Record(place, record.logprobs, record.counts, record.width, record.dtype)

    def sweep(self) -> None:
        """Remove what this process has not kept, and what processes left that were killed."""
        for part in self.folder.glob("*.part"):
            with contextlib.suppress(OSError):
                if part.name.endswith(f".{os.getpid()}.part") or time.time() - part.stat().st_mtime > _STALE_SECONDS:
                    shutil.rmtree(part, ignore_errors=True)

    def _make_room(self, newest: Path) -> None:
        found = [(place.stat().st_mtime_ns, _size(place), place) for place in self.folder.iterdir() if place.is_dir() and place.suffix != ".part"]
        total = sum(size for _, size, _ in found)
        for _, size, place in sorted(found):
            if total <= self.most:
                return
            if place != newest:
                shutil.rmtree(place, ignore_errors=True)
                total -= size


def record_key(subject: Subject, requests: Sequence[ScoringRequest], notes: Path, *, hidden: bool) -> str:
    """Follows from the bytes of the weights, the configuration, the tokens, and what computes with them. `notes` remembers digests of files.
    Raises OSError when a file cannot be read."""
    digest = hashlib.sha256()
    for request in requests:
        digest.update(np.array([len(request.tokens), request.start, *request.tokens], dtype=np.int64).tobytes())
    card = subject.card
    identity = {
        "version": [__version__, SCORING, torch.__version__, instruction_set().model],
        "files": [remembered_sha256(path, notes) for path in card.files],
        "config": [card.architecture, card.config, card.quantization],
        "settings": [str(subject.dtype), default_kernels(subject.dtype).name, subject.known, subject.longest],
        "requests": [digest.hexdigest(), hidden],
    }
    return hashlib.sha256(json.dumps(identity, sort_keys=True, default=str).encode()).hexdigest()


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())
