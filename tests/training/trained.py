"""The demonstration heads, trained once for a run of tests."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from functools import cache
from pathlib import Path

from headway.artifacts.cache_folders import headway_cache
from headway.training.demonstration import Result, demonstration_heads


@cache
def trained() -> tuple[Path, dict[str, Result]]:
    """The package and what was measured, in a cache that shares the encoder with the one of the tests."""
    place = Path(tempfile.mkdtemp(prefix="demonstration-"))
    atexit.register(shutil.rmtree, place, ignore_errors=True)
    (headway_cache() / "models").mkdir(parents=True, exist_ok=True)
    (place / "models").symlink_to(headway_cache() / "models")
    results: list[Result] = []
    return demonstration_heads(place, progress=results.append), {result.task: result for result in results}
