"""Settings that must be there before torch is imported, in this process and in the servers that tests start; and which tests may run
side by side."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

# Most matrices of the tests are tiny: a second thread only waits, and OpenMP threads that spin while they wait starve
# whatever else runs on the machine.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# Triton asks once, when it is imported: its kernels run in numpy, on the CPU (`make test-gpu` says otherwise).
os.environ.setdefault("TRITON_INTERPRET", "1")

# Two workers (`make test`): one for the folders that start servers, one process after another, so that what they do within some seconds
# does not depend on each other; one for everything else. The first half lasts about as long as the second.
_PROCESSES: Final = frozenset(
    {"cases", "cli", "compose", "conformance", "docs", "doctor", "e2e", "examples", "flags", "host", "http", "shim", "wire"}
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        folder = item.path.relative_to(here).parts[0]
        item.add_marker(pytest.mark.xdist_group("processes" if folder in _PROCESSES else "in process"))
