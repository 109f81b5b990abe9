"""What a baseline said to a set of requests, on disk: scores, and the hidden states from which its head makes its distributions again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from headway.errors import ArtifactError
from headway.evaluation.scoring import Numbers

_HIDDEN, _SCORES, _FACTS = "hidden.bin", "scores.npz", "facts.json"
_DTYPES: Final = {"bfloat16": torch.bfloat16, "float32": torch.float32}


@dataclass(frozen=True, slots=True)
class Record:
    """`logprobs` of the targets of all requests, one after the other, `counts` of each. `width` of a hidden state, 0 where none are kept."""

    folder: Path
    logprobs: Numbers
    counts: tuple[int, ...]
    width: int
    dtype: torch.dtype

    def logprobs_of_each(self) -> list[Numbers]:
        """Of each request."""
        return np.split(self.logprobs, np.cumsum(self.counts)[:-1])

    def hidden(self) -> Iterator[torch.Tensor]:
        """Of each request, [targets, hidden]; only these are in memory."""
        with (self.folder / _HIDDEN).open("rb") as file:
            for count in self.counts:
                nbytes = count * self.width * self.dtype.itemsize
                raw = bytearray(file.read(nbytes))
                yield torch.frombuffer(raw, dtype=self.dtype).view(count, self.width) if nbytes else torch.empty(0, self.width, dtype=self.dtype)


class RecordWriter:
    """Grows in `folder`, which it makes. `finish` makes it readable."""

    def __init__(self, folder: Path, dtype: torch.dtype):
        folder.mkdir(parents=True, mode=0o700)
        self._folder, self._dtype, self._width = folder, dtype, 0
        self._parts: list[Numbers] = []
        self._file = (folder / _HIDDEN).open("wb")

    def add(self, logprobs: Sequence[Numbers], hidden: torch.Tensor | None) -> None:
        """`logprobs` of each of some requests, `hidden` the states of all of them."""
        self._parts += logprobs
        if hidden is not None:
            self._width = hidden.shape[1]
            self._file.write(hidden.contiguous().view(torch.uint8).numpy().tobytes())

    def finish(self) -> Record:
        self._file.close()
        whole = np.concatenate(self._parts)
        np.savez(self._folder / _SCORES, logprobs=whole)
        counts = [len(part) for part in self._parts]
        facts = {"counts": counts, "width": self._width, "dtype": str(self._dtype).removeprefix("torch.")}
        (self._folder / _FACTS).write_text(json.dumps(facts), encoding="utf-8")
        return Record(self._folder, whole, tuple(counts), self._width, self._dtype)


def read_record(folder: Path, counts: Sequence[int]) -> Record:
    """Of requests with these many targets. Raises OSError, or ArtifactError (`record_invalid`) when it is not one."""
    try:
        facts: dict[str, Any] = json.loads((folder / _FACTS).read_bytes())
        with np.load(folder / _SCORES, allow_pickle=False) as stored:
            logprobs = stored["logprobs"].astype(np.float64)
        record = Record(folder, logprobs, tuple(facts["counts"]), int(facts["width"]), _DTYPES[facts["dtype"]])
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise _invalid(folder, str(error)[:200]) from None
    size = sum(record.counts) * record.width * record.dtype.itemsize
    if list(record.counts) != list(counts) or len(logprobs) != sum(counts) or (folder / _HIDDEN).stat().st_size != size:
        raise _invalid(folder, "its files do not belong together")
    return record


def _invalid(folder: Path, why: str) -> ArtifactError:
    return ArtifactError(f"{folder} holds no record of an evaluation: {why}", reason="record_invalid", param=str(folder))
