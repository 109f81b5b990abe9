"""Room on the disk: asked for before anything is written, and named when it ends nevertheless."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from headway.errors import ConfigError

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def check_space(folder: Path, checkpoint: int, hidden: int) -> None:
    """`folder` is there; what an interrupted run left in it is counted as room. `hidden` bytes are needed twice, while layers run.

    Raises ConfigError (`disk_full`).
    """
    needed = checkpoint + 2 * hidden
    there = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    free = shutil.disk_usage(folder).free + there
    if free < needed:
        texts = f" and {_megabytes(2 * hidden)} while it is made" if hidden else ""
        raise ConfigError(
            f"the checkpoint takes about {_megabytes(checkpoint)}{texts}; {_megabytes(free)} are free in {folder.parent}",
            reason="disk_full", param="output", fix="Free space, or name a folder on another disk with --output.",
        )  # fmt: skip


@contextmanager
def writing(output: Path) -> Iterator[None]:
    """Raises ConfigError (`disk_full`, `output_unwritable`) in place of OSError."""
    try:
        yield
    except OSError as error:
        full = error.errno in _FULL
        raise ConfigError(
            f"{error.filename or output} cannot be written: {error.strerror or error}", reason="disk_full" if full else "output_unwritable",
            param="output", fix="What is finished is kept: make room, and run the same command again." if full else "Check the folder and its permissions.",
        ) from error  # fmt: skip


def _megabytes(nbytes: int) -> str:
    return f"{nbytes / 1e6:,.0f} MB"
