"""Tiny multimodal packages, written once for each test session, loaded, and asked."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from headway.runtime.family import Placement
from headway.runtime.loaded_model import LoadedModel
from headway.runtime.multimodal.family import MultimodalEmbedding
from headway.runtime.package import Package
from headway.runtime.plan import run_plan
from headway.wire.embeddings import EmbeddingInput, EmbeddingsRequest

FAMILY = MultimodalEmbedding()
SEED = 3


def load(folder: Path, dtype: Literal["float32", "bfloat16"] = "float32") -> LoadedModel:
    """As the loader does it: detected, described, loaded, and counted."""
    package = Package(str(folder), folder)
    assert FAMILY.detect(package)
    spec = FAMILY.describe(package)
    model = FAMILY.load(package, spec, Placement("cpu", dtype, False), lambda done, total: None)
    assert model.facts.parameters == spec.parameters
    assert set(model.planners) == set(spec.surfaces)
    assert all((folder / name).is_file() for name in spec.files)
    return model


class MultimodalModels:
    def __init__(self, root: Path):
        self._root = root
        self.load = lru_cache(lambda variant: load(self.folder(variant)))

    def folder(self, variant: str) -> Path:
        folder = self._root / variant
        if not folder.exists():
            FAMILY.write_fixture(folder, variant, SEED)
        return folder


def ask(model: LoadedModel, *inputs: EmbeddingInput, **fields: Any) -> dict[str, Any]:
    """Every row in a forward pass of its own."""
    return run_plan(model, model.planners["embeddings"](EmbeddingsRequest(inputs, **fields)))


def ask_together(model: LoadedModel, *inputs: EmbeddingInput) -> dict[str, Any]:
    """All rows in one forward pass."""
    plan = model.planners["embeddings"](EmbeddingsRequest(inputs))
    rows = next(plan)
    try:
        plan.send(model.forward(rows))
    except StopIteration as done:
        body: dict[str, Any] = done.value
        return body
    raise AssertionError("embeddings need one round")


def vectors(body: dict[str, Any]) -> npt.NDArray[np.float64]:
    return np.array([entry["embedding"] for entry in body["data"]], dtype=np.float64)


def cosines(mine: npt.NDArray[np.float64], expected: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Of rows. `mine` must have length 1."""
    assert np.abs(np.linalg.norm(mine, axis=1) - 1).max() < 1e-5
    found: npt.NDArray[np.float64] = (mine * expected).sum(1) / np.linalg.norm(expected, axis=1)
    return found
