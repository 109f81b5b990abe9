"""What packages say of their own files: manifests and lists of digests, and the comparison with the files that are there.

Formats and their sources: docs/families.md.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from headway.artifacts.bounded_json import read_json_object
from headway.errors import PackageError

_SHA256: Final = re.compile(r"[0-9a-f]{64}")
_SHOWN: Final = 5
_MAX_SUMS_BYTES: Final = 1 << 20
FIX: Final = "The download is damaged or the repository has changed: delete the package from the cache and start again."


@dataclass(frozen=True, slots=True)
class Verified:
    """`model_sha256` names the model: it changes with anything that changes answers. `manifest_sha256` is "" without one."""

    model_sha256: str
    manifest_sha256: str = ""


@dataclass(frozen=True, slots=True)
class FileList:
    """Digests that a package records, from the file `source` inside of it. `sizes` in bytes, where they are recorded."""

    source: str
    digests: Mapping[str, str]
    sizes: Mapping[str, int] = field(default_factory=dict)

    def check(self, found: Mapping[str, str], *, complete: bool) -> None:
        """Compare with the digests of the files that will be loaded.

        `complete`: each of them must be listed. Raises PackageError: `hash_mismatch`, `unlisted_file`.
        """
        unlisted = sorted(name for name in found if name not in self.digests and name != self.source)
        if complete and unlisted:
            raise PackageError(
                f"{self.source} does not list {_some(unlisted)}, which the model needs", reason="unlisted_file", param=unlisted[0],
                fix="Use a package whose list is complete.",
            )  # fmt: skip
        wrong = sorted(name for name, digest in found.items() if self.digests.get(name, digest) != digest)
        if wrong:
            raise mismatch(self.source, wrong)


def mismatch(source: str, names: list[str]) -> PackageError:
    """Files that are not those that `source` describes."""
    return PackageError(
        f"a file hash does not match: {_some(names)} differ(s) from what {source} records", reason="hash_mismatch", param=names[0], fix=FIX,
    )  # fmt: skip


def canonical_digest(value: Any) -> str:
    """SHA-256 of the JSON of `value` with sorted keys and no spaces."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()).hexdigest()


def digest_of_digests(digests: Mapping[str, str]) -> str:
    """One digest for a set of files: that of the canonical JSON of name -> digest."""
    return canonical_digest(dict(digests))


def read_file_list(folder: Path, source: str, key: str = "files_sha256", sizes_key: str = "files_bytes") -> tuple[FileList, dict[str, Any]]:
    """The digests under `key` of the manifest `source`, and the whole manifest.

    An entry is a digest, or an object with `sha256`. Raises PackageError (`manifest_invalid`, or those of the JSON reader).
    """
    manifest = read_json_object(folder / source)
    listed = manifest.get(key)
    if not isinstance(listed, dict) or not listed:
        raise _invalid(folder / source, f"it needs an object {key!r} of files and their digests")
    digests: dict[str, Any] = {name: entry.get("sha256") if isinstance(entry, dict) else entry for name, entry in listed.items()}
    _check_digests(folder / source, source, digests)
    sizes = manifest.get(sizes_key) or {}
    if not isinstance(sizes, dict) or any(type(size) is not int for size in sizes.values()):
        raise _invalid(folder / source, f"{sizes_key!r} must map files to numbers of bytes")
    return FileList(source, digests, sizes), manifest


def read_sums(folder: Path, source: str = "SHA256SUMS") -> FileList | None:
    """A list as `sha256sum` writes it; None when the package has none. Raises PackageError (`manifest_invalid`)."""
    path = folder / source
    if not path.is_file():
        return None
    if path.stat().st_size > _MAX_SUMS_BYTES:
        raise _invalid(path, f"a list of digests has at most {_MAX_SUMS_BYTES} bytes")
    digests: dict[str, Any] = {}
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        digest, _, name = line.strip().partition(" ")
        if digest:
            digests[name.strip().removeprefix("*").removeprefix("./")] = digest
    _check_digests(path, source, digests)
    return FileList(source, digests)


def check_sizes(folder: Path, listed: FileList, names: list[str]) -> None:
    """Cheap, before any digest: the sizes of the files. Raises PackageError (`hash_mismatch`)."""
    wrong = [name for name in names if name in listed.sizes and (folder / name).is_file()
             and (folder / name).stat().st_size != listed.sizes[name]]  # fmt: skip
    if wrong:
        raise mismatch(listed.source, wrong)


def check_inventory(folder: Path, listed: FileList) -> None:
    """The folder holds exactly the files of the list and the list itself. Raises PackageError (`inventory_differs`).

    What a hub client writes into a folder of its own (names that begin with a dot) does not count.
    """
    there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    there = {name for name in there if not any(part.startswith(".") for part in name.split("/"))}
    wanted = {name for name in listed.digests if not name.startswith(".")} | {listed.source}
    if missing := sorted(wanted - there):
        raise PackageError(f"{folder} lacks {_some(missing)}, which {listed.source} lists", reason="inventory_differs", param=missing[0], fix=FIX)
    if extra := sorted(there - wanted):
        raise PackageError(
            f"{folder} holds {_some(extra)}, which {listed.source} does not list", reason="inventory_differs", param=extra[0],
            fix="Remove what does not belong to the package.",
        )  # fmt: skip


def _check_digests(path: Path, source: str, digests: Mapping[str, Any]) -> None:
    for name, digest in digests.items():
        if not isinstance(digest, str) or not _SHA256.fullmatch(digest):
            raise _invalid(path, f"{name!r:.80} has no SHA-256 of 64 lower-case hex digits")
        if name == source or name.startswith("/") or ".." in name.split("/") or "\\" in name:
            raise _invalid(path, f"{name!r:.80} is no path of a file inside the package")


def _invalid(path: Path, why: str) -> PackageError:
    return PackageError(f"{path} cannot be used: {why}", reason="manifest_invalid", param=str(path), fix="Download the package again.")


def _some(names: list[str]) -> str:
    return ", ".join(name[:120] for name in names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
