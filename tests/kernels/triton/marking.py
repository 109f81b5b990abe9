"""Which tests are those of a GPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.kernels.triton.place import interpreted


def mark_tests_of_a_gpu(items: list[pytest.Item], folder: Path) -> None:
    """Where Triton's interpreter is off, all of the folder."""
    for item in items:
        if not interpreted() and folder in item.path.parents:
            item.add_marker(pytest.mark.gpu)
