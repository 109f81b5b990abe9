"""A trained selector in the router: from a request's vector to a model."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headway.errors import ConfigError
from headway.router.deployments.calls import Unanswered
from headway.router.selection.trained.dataset import Row
from headway.router.selection.trained.optimizing import train_selector
from headway.router.selection.trained.training import TrainingSettings
from tests.router.selection.harness import Chooser, ScriptedCalls
from tests.router.selection.trained.topics import rows, vector

REFS = [{"model": "talker"}, {"model": "coder"}, {"model": "stranger"}]


@pytest.fixture(scope="module")
def models_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    found = rows(200, seed=1, noise=0)
    vectors = np.array([row["embedding"] for row in found], np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    given = [Row(row["text"], {name: float(name == row["model"]) for name in ("coder", "solver", "talker")}) for row in found]
    for algorithm in ("knn", "kmeans", "svm", "mlp"):
        train_selector(given, vectors, "r1", algorithm, TrainingSettings(), folder, 0.2)
    return folder


def chooser(models_path: Path, algorithm: str, calls: ScriptedCalls, refs: Any = REFS) -> Chooser:
    shared = {"router": {"model_selection": {"ml": {"models_path": str(models_path)}}}}
    return Chooser(refs, {"type": algorithm}, calls, global_=shared)


TEXT = "python function bug compile please the"


@pytest.mark.parametrize("algorithm", ["knn", "kmeans", "svm", "mlp"])
def test_the_model_of_the_topic_answers_and_strangers_come_last(models_path: Path, algorithm: str) -> None:
    found = chooser(models_path, algorithm, ScriptedCalls({TEXT: vector(TEXT)}))
    selection = asyncio.run(found.selector.select(found.context(TEXT)))
    assert (selection.order, selection.method, selection.status) == (("coder", "talker", "stranger"), algorithm, "selected")
    assert found.selector.deployments() == {"e"}


@pytest.mark.parametrize(
    ("calls", "word"),
    [
        (ScriptedCalls(Unanswered("unavailable")), "unavailable"),
        (ScriptedCalls({TEXT: vector(TEXT)}, representation="r2"), "embedding_model_changed"),
        (ScriptedCalls({TEXT: [1.0, 0.0]}), "embedding_model_changed"),
    ],
)
def test_without_vectors_of_its_own_model_it_does_not_guess(models_path: Path, calls: ScriptedCalls, word: str) -> None:
    found = chooser(models_path, "knn", calls)
    selection = asyncio.run(found.selector.select(found.context(TEXT)))
    assert (selection.model, selection.status) == ("talker", "fallback")
    assert found.services.metrics.value("llm_model_selection_fallback", "knn", word) == 1


def test_models_that_it_has_never_seen_are_not_ranked(models_path: Path) -> None:
    found = chooser(models_path, "knn", ScriptedCalls(), [{"model": "x"}, {"model": "y"}])
    selection = asyncio.run(found.selector.select(found.context(TEXT)))
    assert (selection.model, selection.status) == ("x", "fallback")
    assert found.calls.asked == []


def test_files_of_another_algorithm_are_refused(models_path: Path) -> None:
    shared = {"router": {"model_selection": {"ml": {"svm": {"pretrained_path": str(models_path / "knn")}}}}}
    with pytest.raises(ConfigError, match="is a knn, expected svm"):
        Chooser(REFS, {"type": "svm"}, global_=shared)
