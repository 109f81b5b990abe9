"""A cache that cannot be written: full, read-only, not ours. One reason each, with the numbers."""

from __future__ import annotations

import errno
import os
import shutil
from pathlib import Path
from typing import Final

from headway.errors import ArtifactError

# EFBIG: the file system or `ulimit -f` does not take files of this size.
_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def check_free_space(what: str, needed: int, cache: Path, variable: str) -> None:
    """Refuse before the first byte when `needed` bytes do not fit. `variable` is what moves the cache to another disk.

    Raises ArtifactError (`disk_full`).
    """
    if shutil.disk_usage(existing_parent(cache)).free < needed:
        raise disk_full(what, needed, cache, variable)


def storage_error(error: OSError, what: str, needed: int, cache: Path, variable: str) -> ArtifactError:
    """Translate what the system said while writing to `cache`: `disk_full`, else `cache_not_writable`."""
    if error.errno in _FULL:
        return disk_full(what, needed, cache, variable, said=error.strerror)
    owner = f" as user {os.getuid()}" if hasattr(os, "getuid") else ""
    return ArtifactError(
        f"{what} cannot be stored in {cache}{owner}: {error.strerror or error}"
        + (f" ({error.filename})" if error.filename else ""),
        reason="cache_not_writable",
        param="model",
        fix=f"Set {variable} to a folder that can be written; a cache that holds the model already may be read-only.",
    )


def disk_full(what: str, needed: int, cache: Path, variable: str, said: str | None = None) -> ArtifactError:
    free = shutil.disk_usage(existing_parent(cache)).free
    return ArtifactError(
        f"{what} needs about {_amount(needed)} in {cache}, {_amount(free)} are free" + (f" ({said})" if said else ""),
        reason="disk_full",
        param="model",
        fix=f"Free space, or set {variable} to a folder on another disk; what was downloaded is kept and gone on with.",
    )


def existing_parent(folder: Path) -> Path:
    """The folder, or the nearest one above it that exists."""
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    return folder


def _amount(nbytes: int) -> str:
    return f"{nbytes / 1e6:,.1f} MB" if nbytes < 1e9 else f"{nbytes / 1e9:,.2f} GB"
