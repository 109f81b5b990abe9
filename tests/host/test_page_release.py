"""Pages that are given back read as zeros, at the same addresses, and their neighbours stay."""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np

from headway.host.page_release import file_ranges, release_pages, whole_pages

PAGE = mmap.PAGESIZE


def test_only_whole_pages_inside_are_dropped() -> None:
    values = np.ones(10 * PAGE, np.uint8)
    at = values.ctypes.data
    start, end = whole_pages(at + 1, 5 * PAGE)
    assert start % PAGE == end % PAGE == 0
    assert at < start < end <= at + 1 + 5 * PAGE
    assert release_pages(at + 1, 5 * PAGE) == end - start
    assert not values[start - at : end - at].any()
    assert values[: start - at].all()
    assert values[end - at :].all()
    assert release_pages(at + 1, 10) == 0


def test_memory_of_files_is_told_from_memory_of_the_process(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 4 * PAGE)
    own = np.ones(4 * PAGE, np.uint8)
    with path.open("rb") as file:
        mapped = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY), np.uint8)

    def of_file(array: np.ndarray) -> bool:  # type: ignore[type-arg]
        return any(start <= array.ctypes.data < end for start, end in file_ranges())

    assert of_file(mapped)
    assert not of_file(own)
    release_pages(mapped.ctypes.data, mapped.nbytes)
    assert bytes(mapped[:3]) == b"xxx", "it comes back from the file"
