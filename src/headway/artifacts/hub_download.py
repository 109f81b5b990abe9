"""Files of one hub revision -> the cache of huggingface_hub, in its layout.

Not its `snapshot_download`, because that throws a partial file away whenever a download ends early and checks sizes
only: here a part file is gone on with by the next start, every hash that the hub promises is checked, and a blob is
whole or absent.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final
from urllib.parse import quote

import httpx

from headway.artifacts.cache_lock import locked
from headway.artifacts.hub_cache import storage_folder
from headway.artifacts.hub_errors import Asked, hub_endpoint, hub_refusal
from headway.artifacts.hub_listing import HubFile, stays_inside
from headway.artifacts.progress import ProgressCallback
from headway.artifacts.resumable_download import download
from headway.artifacts.storage_errors import check_free_space, storage_error
from headway.errors import ArtifactError

CACHE_VARIABLE: Final = "HF_HUB_CACHE"


def download_files(
    client: httpx.Client, asked: Asked, commit: str, files: Sequence[HubFile], *, progress: ProgressCallback | None
) -> Path:
    """Fetch what is not in the cache yet, in the order given; returns the snapshot folder.

    Raises ArtifactError: `disk_full`, `cache_not_writable`, `cache_locked`, `hash_mismatch`, `download_failed` and the
    reasons of `hub_refusal`.
    """
    store, needed = _Store(asked, commit), 0
    sizes = [file.promised.nbytes for file in files]
    total = None if None in sizes else sum(size or 0 for size in sizes)
    try:
        absent = [file for file in files if not store.holds(file)]
        needed = sum(store.lacks(file) for file in absent)
        check_free_space(asked.repo, needed, asked.cache, CACHE_VARIABLE)
        store.write_reference()
        done = sum(file.promised.nbytes or 0 for file in files if file not in absent)
        for file in absent:
            store.fetch(client, file, _shifted(progress, asked.repo, done, total))
            done += (store.snapshot / file.name).stat().st_size
    except OSError as error:
        raise storage_error(error, asked.repo, needed, asked.cache, CACHE_VARIABLE) from None
    return store.snapshot


def _shifted(
    progress: ProgressCallback | None, repo: str, before: int, total: int | None
) -> Callable[[str, int, int | None], None] | None:
    """Progress within one file -> progress within all of them; what waiting reports is passed on as it is."""
    if progress is None:
        return None

    def report(label: str, done: int, of: int | None) -> None:
        if label == repo:
            progress(repo, before + done, total)
        else:
            progress(label, done, of)

    return report


class _Store:
    """The folder of one repository in the cache: `blobs/`, `snapshots/COMMIT/NAME` (links to blobs), `refs/`."""

    def __init__(self, asked: Asked, commit: str):
        self.asked = asked
        self.commit = commit
        self.folder = storage_folder(asked.repo, asked.cache)
        self.snapshot = self.folder / "snapshots" / commit

    def holds(self, file: HubFile) -> bool:
        """True when the snapshot has the file, in the promised size."""
        return self._whole(self.snapshot / file.name, file)

    def _whole(self, path: Path, file: HubFile) -> bool:
        return path.is_file() and file.promised.nbytes in (None, path.stat().st_size)

    def _blob(self, file: HubFile) -> Path:
        return self.folder / "blobs" / file.blob

    def _part(self, file: HubFile) -> Path:
        return self.folder / "blobs" / f"{file.blob}.headway.incomplete"

    def lacks(self, file: HubFile) -> int:
        """Bytes still to be fetched, 0 when the hub does not tell the size."""
        if self._whole(self._blob(file), file):
            return 0
        part = self._part(file)
        return max(0, (file.promised.nbytes or 0) - (part.stat().st_size if part.exists() else 0))

    def write_reference(self) -> None:
        """Which commit a branch or tag is, as huggingface_hub notes it."""
        revision = self.asked.revision or "main"
        if revision == self.commit or not stays_inside(revision):
            return
        path = self.folder / "refs" / revision
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
        fresh.write_text(self.commit)
        fresh.replace(path)

    def fetch(self, client: httpx.Client, file: HubFile, progress: ProgressCallback | None) -> None:
        blob, part, asked = self._blob(file), self._part(file), self.asked
        blob.parent.mkdir(parents=True, exist_ok=True)
        lock = asked.cache / ".locks" / self.folder.name / f"{file.blob}.lock"
        with locked(lock, f"{file.name} of {asked.repo}", lambda: _bytes_under(blob), progress=progress):
            if not self._whole(blob, file):  # absent, damaged, or of a version before files had hashes
                blob.unlink(missing_ok=True)
                url = f"{hub_endpoint()}/{asked.repo}/resolve/{self.commit}/{quote(file.name)}"
                download(client, url, part, file.promised, label=asked.repo, progress=progress, refusal=self._refusal)
                part.replace(blob)
            self._link(blob, self.snapshot / file.name)

    def _refusal(self, status: int, headers: Mapping[str, str], url: str) -> ArtifactError:
        return hub_refusal(status, headers, url, self.asked)

    def _link(self, blob: Path, name: Path) -> None:
        name.parent.mkdir(parents=True, exist_ok=True)
        fresh = name.with_name(f"{name.name}.{os.getpid()}.new")
        try:
            fresh.symlink_to(os.path.relpath(blob, name.parent))
        except (OSError, NotImplementedError):  # a file system without links: the file itself goes there, as huggingface_hub does it
            blob.replace(name)
        else:
            fresh.replace(name)


def _bytes_under(blob: Path) -> int:
    """Bytes of the blob and of whatever is on its way to become it, of any program."""
    total = 0
    for path in blob.parent.glob(f"{blob.name}*"):
        try:
            total += path.stat().st_size
        except OSError:  # renamed while we look
            continue
    return total
