"""D12: what is in a batch beside a text does not change its answer."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Literal

import numpy as np
import pytest

from headway.artifacts.resolve import resolve
from headway.runtime.loaded_model import LoadedModel
from headway.runtime.row import Row
from headway.wire.classify import ClassifyRequest, TextInput
from headway.wire.embeddings import EmbeddingsRequest, Text
from tests.runtime.tasks.task_models import TaskModels, answer, answer_together, load, rows_of

WORDS = ["the", "cafeteria", "opens", "at", "eight", "write", "two", "sorted", "lists", "Dana", "Wells", "555-0142", "您好", "🙂", "instructions"]


def texts(count: int = 64, longest: int = 150) -> list[str]:
    chance = Random(12)
    return [" ".join(chance.choices(WORDS, k=1 + longest * i // count)) for i in range(count)]


def requests(longest: int) -> dict[str, tuple[str, object]]:
    """variant -> surface and request."""
    inputs = tuple(TextInput(text) for text in texts(longest=longest))
    return {
        "embedding-bert": ("embeddings", EmbeddingsRequest(tuple(Text(text) for text in texts(longest=longest)), overflow="truncate")),
        "sequence-bert": ("classify", ClassifyRequest(inputs, overflow="truncate")),
        "token-bert": ("classify", ClassifyRequest(inputs, overflow="truncate")),
        "scores-bert": ("classify", ClassifyRequest(inputs)),  # in windows of 64 tokens
        "sequence-modernbert": ("classify", ClassifyRequest(inputs, overflow="truncate")),
    }  # fmt: skip


@pytest.fixture(scope="module")
def task_models(tmp_path_factory: pytest.TempPathFactory) -> TaskModels:
    return TaskModels(tmp_path_factory.mktemp("tasks"))


def largest_difference(model: LoadedModel, rows: list[Row]) -> float:
    """Over all orders and companions of the case."""
    alone = [model.forward([row])[0] for row in rows]
    shuffled = list(range(len(rows)))
    Random(1).shuffle(shuffled)
    by_length = sorted(range(len(rows)), key=lambda i: len(rows[i].token_ids))
    long = Row((5,) * 500, rows[0].readout, rows[0].detail)
    found = 0.0
    for order, extra in ((list(range(len(rows))), []), (shuffled, []), (by_length, []), (shuffled, [long])):
        together = model.forward([*extra, *(rows[i] for i in order)])[len(extra) :]
        again = model.forward([*extra, *(rows[i] for i in order)])[len(extra) :]
        assert all((one == other).all() for one, other in zip(together, again, strict=True))
        found = max([found, *(float(np.abs(value - alone[i]).max()) for i, value in zip(order, together, strict=True))])
    return found


@pytest.mark.parametrize("variant", ["embedding-bert", "sequence-bert", "token-bert", "scores-bert", "sequence-modernbert"])
@pytest.mark.parametrize(("dtype", "bound"), [("float32", 1e-5), ("bfloat16", 5e-3)])
def test_d12_rows_in_any_company(task_models: TaskModels, variant: str, dtype: Literal["float32", "bfloat16"], bound: float) -> None:
    model = load(task_models.folder(variant), dtype)
    surface, request = requests(60)[variant]
    assert largest_difference(model, rows_of(model, surface, request)) <= bound  # type: ignore[arg-type]


@pytest.mark.parametrize("variant", ["sequence-bert", "token-bert", "scores-bert"])
def test_d12_answers_are_those_of_each_text_alone(task_models: TaskModels, variant: str) -> None:
    model = task_models.load(variant)
    surface, request = requests(60)[variant]
    one, other = answer(model, surface, request), answer_together(model, surface, request)  # type: ignore[arg-type]
    for left, right in zip(one["results"], other["results"], strict=True):
        assert left.get("label") == right.get("label")
        assert left.get("selected") == right.get("selected")
        assert [{**span, "probability": 0} for span in left.get("spans", ())] == [{**span, "probability": 0} for span in right.get("spans", ())]
    assert answer_together(model, surface, request) == other  # type: ignore[arg-type]


@pytest.mark.e2e
@pytest.mark.parametrize(("dtype", "bound"), [("float32", 1e-5), ("bfloat16", 2e-2)])
def test_d12_minilm(dtype: Literal["float32", "bfloat16"], bound: float) -> None:
    """Vectors before they are normalized have numbers up to about 1."""
    model = load(Path(resolve("all-minilm-l6-v2")), dtype)
    request = EmbeddingsRequest(tuple(Text(text) for text in texts(20, 40)), overflow="truncate")
    assert largest_difference(model, rows_of(model, "embeddings", request)) <= bound
