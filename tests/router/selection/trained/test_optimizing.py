"""Trained selectors are better than chance and than always the same model, on rows that they have not seen."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.svm import SVC

from headway.cli.sr_optimize import evaluate_command, train_command
from headway.errors import ConfigError
from headway.router.selection.trained.artifact import load
from headway.router.selection.trained.dataset import RowsError, read_rows
from headway.router.selection.trained.predictors import PREDICTORS
from headway.router.selection.trained.training import TrainingSettings, train
from tests.router.selection.trained.topics import TOPICS, rows, written

ALGORITHMS = ("knn", "kmeans", "svm", "mlp")


def invoke(command: Any, *words: str) -> dict[str, Any]:
    result = CliRunner().invoke(command, [*words, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)  # type: ignore[no-any-return]


def trained_on(folder: Path, algorithm: str, found: list[dict[str, Any]], *words: str) -> dict[str, Any]:
    data = written(folder / "train.jsonl", found)
    return invoke(train_command, "--data", str(data), "--algorithm", algorithm, "--output", str(folder), *words)


@pytest.mark.parametrize("scores", [False, True], ids=["best model", "scores"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_they_beat_chance_and_the_majority_on_unseen_rows(tmp_path: Path, algorithm: str, scores: bool) -> None:
    told = trained_on(tmp_path, algorithm, rows(400, seed=1, scores=scores))
    unseen = written(tmp_path / "unseen.jsonl", rows(200, seed=2, scores=scores))
    found = invoke(evaluate_command, "--data", str(unseen), "--selector", str(tmp_path / algorithm))
    for judgement in (told, found):
        assert judgement["accuracy"] > judgement["majority_accuracy"] + 0.15
        assert judgement["accuracy"] > judgement["random_accuracy"] + 0.3
        assert judgement["best_score"] >= judgement["score"] > judgement["majority_score"] > judgement["random_score"]
    assert found["rows"] == 200
    assert set(found["chosen"]) == set(TOPICS)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_arrays_say_what_scikit_learn_says() -> None:
    chance = np.random.default_rng(3)
    vectors = chance.normal(size=(120, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    best = (vectors[:, 0] > 0).astype(int) + (vectors[:, 1] > 0.3)
    values = np.eye(3, dtype=np.float32)[best]
    settings = TrainingSettings(k=5, hidden=(16,))

    def predicted(algorithm: str) -> Any:
        return PREDICTORS[algorithm].of(train(algorithm, vectors, values, None, settings)).scores(vectors)

    knn = KNeighborsClassifier(5, metric="cosine", weights=lambda distances: np.maximum(1 - distances, 0) + 1e-6).fit(vectors, best)
    assert np.allclose(predicted("knn"), knn.predict_proba(vectors), atol=1e-4)
    svm = [SVC(gamma=1.0, class_weight="balanced").fit(vectors, best == model).decision_function(vectors) for model in range(3)]
    assert np.allclose(predicted("svm"), np.array(svm).T, atol=1e-3)
    mlp = MLPClassifier((16,), max_iter=500, alpha=1e-3, random_state=0).fit(vectors, best)
    logits = predicted("mlp")
    chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert np.allclose(chances, mlp.predict_proba(vectors), atol=1e-4)


@pytest.mark.parametrize("algorithm", ["svm", "mlp"])
def test_two_models_and_one_that_is_never_the_best(algorithm: str) -> None:
    vectors = np.eye(4, dtype=np.float32)[[0, 1] * 20]
    values = np.zeros((40, 3), np.float32)
    values[::2, 0], values[1::2, 2] = 1, 1
    found = PREDICTORS[algorithm].of(train(algorithm, vectors, values, None, TrainingSettings())).scores(vectors[:2])
    assert found.argmax(axis=1).tolist() == [0, 2]
    assert (found[:, 1] < found.max(axis=1)).all()


def test_costs_count_as_much_as_they_are_told_to() -> None:
    vectors = np.eye(2, dtype=np.float32)[[0, 1] * 10]
    values = np.tile(np.array([[1.0, 0.9]], np.float32), (20, 1))
    values[0] = [0.0, 1.0]
    costs = np.tile(np.array([[10.0, 1.0]], np.float32), (20, 1))

    def chosen(weight: float) -> list[int]:
        settings = TrainingSettings(clusters=2, efficiency_weight=weight)
        return PREDICTORS["kmeans"].of(train("kmeans", vectors, values, costs, settings)).scores(vectors[:2]).argmax(axis=1).tolist()  # type: ignore[no-any-return]

    assert chosen(0.0) == [1, 0]
    assert chosen(0.5) == [1, 1]


def test_what_is_read_as_text_is_also_what_is_printed(tmp_path: Path) -> None:
    data = written(tmp_path / "rows.jsonl", rows(60, seed=1))
    result = CliRunner().invoke(train_command, ["--data", str(data), "--algorithm", "knn", "--output", str(tmp_path)], catch_exceptions=False)
    assert "always talker" in result.stdout
    assert "at random" in result.stdout
    assert "training knn on 60 rows" in result.stderr


def test_files_that_were_changed_are_refused_and_never_executed(tmp_path: Path) -> None:
    trained_on(tmp_path, "knn", rows(60, seed=1))
    folder = tmp_path / "knn"
    load(folder)
    arrays = dict(np.load(folder / "arrays.npz"))
    for broken in ({**arrays, "k": np.array([999.0])}, {**arrays, "values": arrays["values"][:, :2]}, {**arrays, "vectors": arrays["vectors"] * np.nan}, {"k": arrays["k"]}):
        np.savez(folder / "arrays.npz", **broken)
        with pytest.raises(ConfigError, match="cannot be used") as caught:
            load(folder)
        assert caught.value.reason == "selector_unusable"
    touched = tmp_path / "executed"

    class Bomb:
        def __reduce__(self) -> Any:
            return Path.touch, (touched,)

    np.savez(folder / "arrays.npz", **{**arrays, "vectors": np.array([Bomb()], dtype=object)})  # type: ignore[arg-type]
    with pytest.raises(ConfigError):
        load(folder)
    (folder / "arrays.npz").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(ConfigError):
        load(folder)
    assert not touched.exists()
    (folder / "selector.json").unlink()
    with pytest.raises(ConfigError, match=r"selector\.json is missing"):
        load(folder)


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("{", "line 2 is no JSON"),
        ("[]", "no JSON object"),
        ('{"model": "a"}', 'needs a "text"'),
        ('{"text": "x"}', 'needs "model"'),
        ('{"text": "x", "scores": {"a": true}}', 'scores of "a" must be a number'),
        ('{"text": "x", "model": "a", "embedding": [1, "2"]}', "list of numbers"),
        ('{"text": "x", "model": "a", "embedding": [1]}', "either every row has an embedding"),
    ],
)
def test_rows_that_cannot_be_used_are_named_by_line(tmp_path: Path, line: str, complaint: str) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"text": "x", "model": "a"}\n' + line)
    with pytest.raises(RowsError, match=complaint):
        read_rows(path)


def test_rows_that_teach_nothing_are_refused(tmp_path: Path) -> None:
    same = [{**row, "model": "a"} for row in rows(40, seed=1)]
    for found, complaint in ((same, "one model only"), (rows(5, seed=1), "too few")):
        data = written(tmp_path / "rows.jsonl", found)
        result = CliRunner().invoke(train_command, ["--data", str(data), "--algorithm", "knn", "--output", str(tmp_path)])
        assert complaint in str(result.exception)


def test_rows_without_embeddings_need_somebody_who_makes_them(tmp_path: Path) -> None:
    data = written(tmp_path / "rows.jsonl", rows(40, seed=1, embeddings=False))
    result = CliRunner().invoke(train_command, ["--data", str(data), "--algorithm", "knn", "--output", str(tmp_path)])
    assert "Give --config or --endpoint" in str(result.exception)
