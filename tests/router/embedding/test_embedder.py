from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest

from headway.router.deployments.calls import Unanswered
from headway.router.embedding.embedder import Embedder, Vectors
from headway.router.embedding.memo import VectorMemo
from tests.router.scripted_calls import ScriptedCalls

NUMBERS = {"north": [0.0, 2.0], "east": [3.0, 0.0], "north-east": [1.0, 1.0]}


def numbers(given: Any) -> list[float]:
    return NUMBERS.get(str(given), [1.0, 0.5])


def embed(embedder: Embedder, calls: ScriptedCalls, *queries: str) -> Any:
    return asyncio.run(embedder.embed(calls, list(queries)))


def test_vectors_are_of_length_one_and_in_order() -> None:
    found = embed(Embedder("m", VectorMemo(), ["east", "north"]), ScriptedCalls(vectors=numbers), "north-east")
    np.testing.assert_allclose(found.candidates, [[1, 0], [0, 1]])
    np.testing.assert_allclose(found.queries, [[0.5**0.5, 0.5**0.5]], rtol=1e-6)


def test_candidates_are_made_once_and_survive_a_reload() -> None:
    memo, calls = VectorMemo(), ScriptedCalls(vectors=numbers)
    first = Embedder("m", memo, ["north", "east"])
    embed(first, calls, "a")
    embed(first, calls, "b")
    embed(Embedder("m", memo, ["east", "north", "west"]), calls, "c")  # the next generation
    assert [asked for _, _, asked in calls.calls] == [["a", "north", "east"], ["b"], ["c", "west"]]


def test_another_model_never_meets_old_vectors() -> None:
    memo, calls = VectorMemo(), ScriptedCalls(vectors=numbers)
    embedder = Embedder("m", memo, ["north"])
    embed(embedder, calls, "a")
    calls.representation, calls.vectors = "model-2", lambda given: [0.0, 0.0, 1.0]
    found = embed(embedder, calls, "b")
    assert isinstance(found, Vectors)
    assert found.representation == "model-2"
    assert found.candidates.shape == (1, 3)


def test_what_was_made_before_a_failure_is_kept() -> None:
    texts = [f"text {n}" for n in range(150)]
    memo, calls = VectorMemo(), ScriptedCalls(vectors=lambda given: Unanswered("timeout") if given == "text 149" else [1.0, float(len(given))])
    embedder = Embedder("m", memo, texts)
    assert embed(embedder, calls, "a") == Unanswered("timeout")
    calls.calls.clear()
    calls.vectors = lambda given: [1.0, 1.0]
    assert embed(embedder, calls, "a").candidates.shape == (150, 2)
    assert sum(len(asked) for _, _, asked in calls.calls) == 1 + 22  # the query, and the last chunk


@pytest.mark.parametrize("made", [[0.0, 0.0], [float("nan"), 1.0], []])
def test_vectors_that_are_none_are_not_used(made: list[float]) -> None:
    assert embed(Embedder("m", VectorMemo()), ScriptedCalls(vectors=lambda given: made), "a") == Unanswered("invalid_model_output")


def test_the_memo_forgets_the_oldest() -> None:
    memo = VectorMemo(2)
    for text in ("a", "b"):
        memo.keep("r", text, np.ones(2, np.float32))
    memo.find("r", "a")
    memo.keep("r", "c", np.ones(2, np.float32))
    assert [memo.find("r", text) is not None for text in ("a", "b", "c")] == [True, False, True]


def test_a_text_and_an_image_of_the_same_spelling_are_two_things() -> None:
    memo = VectorMemo()
    memo.keep("r", "data:image/png;base64,AA", np.zeros(1, np.float32))
    assert memo.find("r", {"image": "data:image/png;base64,AA"}) is None
