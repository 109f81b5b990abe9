"""Tiny packages of a family, written once for each test session, and loaded."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson

from headway.runtime.family import Dtype, ModelFamily, Placement
from headway.runtime.loaded_model import LoadedModel, Surface
from headway.runtime.package import Package
from headway.runtime.plan import run_plan
from headway.runtime.row import Row
from headway.runtime.tasks.family import TaskHeads
from headway.wire.strict_json import dumps

FAMILY = TaskHeads()
SEED = 3


def load(folder: Path, dtype: Dtype = "float32", shared: bool = False, family: ModelFamily = FAMILY, **options: Any) -> LoadedModel:
    """As the loader does it: detected, described, loaded, and counted."""
    package = Package(str(folder), folder)
    assert family.detect(package)
    spec = family.describe(package)
    assert all((folder / name).is_file() for name in spec.files)
    model = family.load(package, spec, Placement("cpu", dtype, shared, options), lambda done, total: None)
    assert model.facts.parameters == spec.parameters
    assert set(model.planners) == set(spec.surfaces)
    return model


class TaskModels:
    """Folders and models by the name of their variant."""

    def __init__(self, root: Path, family: ModelFamily = FAMILY):
        self._root = root
        self._family = family
        self.load = lru_cache(lambda variant: load(self.folder(variant), family=family))

    def folder(self, variant: str) -> Path:
        folder = self._root / variant
        if not folder.exists():
            self._family.write_fixture(folder, variant, SEED)
        return folder


def answer(model: LoadedModel, surface: Surface, request: Any) -> dict[str, Any]:
    """Every row in a forward pass of its own. What a client reads of the body."""
    return read_back(run_plan(model, model.planners[surface](request)))


def read_back(body: dict[str, Any]) -> dict[str, Any]:
    """The body written and read as JSON."""
    read: dict[str, Any] = orjson.loads(dumps(body))
    return read


def answer_together(model: LoadedModel, surface: Surface, request: Any, others: tuple[Row, ...] = ()) -> dict[str, Any]:
    """All rows of a round, and `others` behind them, in one forward pass."""
    plan = model.planners[surface](request)
    rows = next(plan)
    try:
        while True:
            rows = plan.send(model.forward([*rows, *others])[: len(rows)])
    except StopIteration as done:
        return read_back(done.value)


def rows_of(model: LoadedModel, surface: Surface, request: Any) -> list[Row]:
    """The rows of the first round."""
    return list(next(model.planners[surface](request)))
