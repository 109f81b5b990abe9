"""Digests of the files that will be loaded, compared with what tables, manifests and the hub recorded of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final

from headway.artifacts.resumable_download import Promised, file_sha256
from headway.errors import PackageError
from headway.runtime.loading.manifests import mismatch
from headway.runtime.package import Package

SMALL_BYTES: Final = 16 << 20
_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_GIT_ID: Final = re.compile(r"[0-9a-f]{40}")


class Digests:
    """SHA-256 of the files of one package, each read once."""

    def __init__(self, package: Package, read: Callable[[Path], str] = file_sha256):
        self._root = package.path if package.is_folder else package.path.parent
        self._cached_by_hub = package.repo is not None
        self._read = read
        self._known: dict[str, str] = {}

    def of(self, name: str) -> str:
        """Raises PackageError (`missing_file`, `link_outside`)."""
        if name not in self._known:
            self._known[name] = self._read(self._file(name))
        return self._known[name]

    def of_all(self, names: Iterable[str]) -> dict[str, str]:
        return {name: self.of(name) for name in sorted(names)}

    def check_small(self, recorded: Mapping[str, str]) -> None:
        """Files below 16 MiB that have a recorded digest: they are read by whoever looks at the package.

        Raises PackageError (`hash_mismatch`).
        """
        self._compare(recorded, [name for name in recorded if self._is_small(name)])

    def check(self, recorded: Mapping[str, str], names: Iterable[str]) -> None:
        """The files that will be loaded. Raises PackageError (`hash_mismatch`)."""
        self._compare(recorded, [name for name in names if name in recorded])
        # The cache of the hub names the blob of a large file by its SHA-256, that of a small one by its git id.
        blobs = {name: self._file(name).resolve() for name in names} if self._cached_by_hub else {}
        by_hub = {name: blob.name for name, blob in blobs.items() if _SHA256.fullmatch(blob.name)}
        self._compare(by_hub, list(by_hub))
        changed = [n for n, blob in blobs.items() if _GIT_ID.fullmatch(blob.name) and Promised(git_blob=blob.name).broken_by(blob)]
        if changed:
            raise mismatch("the hub", sorted(changed))

    def _compare(self, recorded: Mapping[str, str], names: Iterable[str]) -> None:
        wrong = sorted(name for name in names if self.of(name) != recorded[name])
        if wrong:
            raise mismatch("the table of known models or the hub", wrong)

    def _is_small(self, name: str) -> bool:
        path = self._root / name
        return path.is_file() and path.stat().st_size < SMALL_BYTES

    def _file(self, name: str) -> Path:
        path = self._root / name
        if not path.is_file():
            raise PackageError(f"{self._root} lacks {name}", reason="missing_file", param=name, fix="Download the package again.")
        # Links lead from a hub snapshot to the blobs beside it, and nowhere else.
        home = self._root.resolve()
        allowed = home.parent.parent if self._cached_by_hub else home
        if not path.resolve().is_relative_to(allowed):
            raise PackageError(f"{path} is a link that leads out of the package", reason="link_outside", param=name)
        return path
