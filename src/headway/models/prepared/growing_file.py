"""Writing a file of prepared weights while a model is loaded, one stack at a time, under a name that nobody reads."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

import torch

from headway.models.fill import Stack
from headway.models.prepared.file_layout import layout, name_of
from headway.models.prepared.mapped_file import TIME_KEY


class GrowingFile:
    """All methods raise OSError: disk full, folder gone, not allowed. Then call `abandon`."""

    def __init__(self, path: Path, stacks: Sequence[Stack], key: str):
        """Makes a new file beside `path`."""
        # Whole even seconds: every file system can keep such a time.
        self._time = int(time.time()) // 2 * 2 * 10**9
        self._layout = layout(stacks, {"key": key, TIME_KEY: str(self._time)})
        self._path = path
        self._unfinished = path.with_suffix(f".{os.getpid()}.part")
        self._file: BinaryIO = self._unfinished.open("wb")
        self._file.write(self._layout.head)

    def add(self, stack: Stack, tensor: torch.Tensor) -> None:
        """`tensor` is contiguous, with the shape and dtype of `stack`."""
        self._file.seek(self._layout.places[name_of(stack)].offset)
        self._file.write(tensor.view(-1).view(torch.uint8).numpy().data)

    def finish(self) -> None:
        """All stacks were added: give the file its name, once its bytes are on the disk. A file that a power cut could leave half
        written under its name would be taken for weights."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        os.utime(self._unfinished, ns=(time.time_ns(), self._time))
        self._unfinished.replace(self._path)

    def abandon(self) -> None:
        """Leave nothing behind."""
        try:
            self._file.close()  # flushes, and fails again where the disk is full
        except OSError:
            self._file.close()
        finally:
            self._unfinished.unlink(missing_ok=True)
