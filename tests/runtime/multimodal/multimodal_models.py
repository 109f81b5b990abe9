"""Tiny multimodal packages, loaded, and asked."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from headway.runtime.loaded_model import LoadedModel
from headway.runtime.multimodal.family import MultimodalEmbedding
from headway.wire.embeddings import EmbeddingInput, EmbeddingsRequest
from tests.runtime.tasks.task_models import TaskModels, answer, answer_together
from tests.runtime.tasks.task_models import load as load_any

FAMILY = MultimodalEmbedding()
MultimodalModels = TaskModels
load = partial(load_any, family=FAMILY)


def ask(model: LoadedModel, *inputs: EmbeddingInput, **fields: Any) -> dict[str, Any]:
    """Every row in a forward pass of its own."""
    return answer(model, "embeddings", EmbeddingsRequest(inputs, **fields))


def ask_together(model: LoadedModel, *inputs: EmbeddingInput) -> dict[str, Any]:
    """All rows in one forward pass."""
    return answer_together(model, "embeddings", EmbeddingsRequest(inputs))


def vectors(body: dict[str, Any]) -> npt.NDArray[np.float64]:
    return np.array([entry["embedding"] for entry in body["data"]], dtype=np.float64)


def cosines(mine: npt.NDArray[np.float64], expected: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """Of rows. `mine` must have length 1."""
    assert np.abs(np.linalg.norm(mine, axis=1) - 1).max() < 1e-5
    found: npt.NDArray[np.float64] = (mine * expected).sum(1) / np.linalg.norm(expected, axis=1)
    return found
