"""Every native kernel is tested on every instruction set that runs here, alone and in a team of two."""

from __future__ import annotations

import pytest

from headway.kernels.native.library import native_library
from headway.kernels.native.tape import Tape

SETS = native_library().sets or (None,)


@pytest.fixture(params=[(name, threads) for name in SETS for threads in (1, 2)], ids=lambda p: f"{p[0]}-{p[1]}", scope="session")
def tape(request: pytest.FixtureRequest) -> Tape:
    """Calls run at once. Hypothesis may use it for all examples: it keeps nothing of a call."""
    name, threads = request.param
    if name is None:
        pytest.skip(native_library().missing or "no native kernels")
    return Tape(name, threads)
