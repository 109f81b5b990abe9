"""All kernels compile for GPUs, which needs none: down to machine code, within the shared memory of a multiprocessor."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

_SHARED = 99 << 10  # bytes of a block at most, the least that devices of capability 8.0 to 9.0 have (CUDA programming guide)


@pytest.mark.gpu  # minutes without one
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("capability", [80, 90])
def test_compiled(capability: int, tmp_path: Path) -> None:
    """In a process of its own: whether kernels are interpreted is decided when Triton is imported."""
    run = subprocess.run(
        [sys.executable, "-m", "tests.kernels.triton.compiled_kernels", str(capability)], cwd=Path(__file__).parents[3],
        env={**os.environ, "TRITON_INTERPRET": "0", "TRITON_CACHE_DIR": str(tmp_path)}, capture_output=True, text=True, timeout=1000, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert len(found) > 40
    assert {name: shared for name, shared in found.items() if shared > _SHARED} == {}
