"""Vectors of rows come from the same client and model as those of requests."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from headway.cli.sr_optimize import train_command
from headway.router.selection.trained.artifact import load
from headway.router.selection.trained.row_vectors import BATCH, VectorsError, endpoint_document, row_vectors
from tests.router.deployments.fake_runtime import FakeRuntime, fake_runtime, noul_card
from tests.router.selection.trained.topics import rows, vector, written

CARD = noul_card("mini", surfaces=["embeddings"], question_types=[], embedding={"dimensions": 96, "representation": "r1"})


def unit(text: str) -> list[float]:
    found = np.array(vector(text))
    return [float(value) for value in found / np.linalg.norm(found)]


async def embeddings(body: dict[str, Any]) -> Any:
    data = [{"index": at, "embedding": unit(text)} for at, text in enumerate(body["input"])]
    return {"data": data, "meta": {"representation": {"model_sha256": "a" * 64, "layer": 6, "dimension": 96}}}


async def asked(texts: list[str], script: Any) -> tuple[np.ndarray[Any, Any], str, FakeRuntime, list[int]]:
    progress: list[int] = []
    async with fake_runtime(CARD) as runtime:
        runtime.script["/v1/embeddings"] = script
        found, representation = await row_vectors(texts, endpoint_document(runtime.endpoint, "mini"), progress.append, ready_seconds=5)
        return found, representation, runtime, progress


def test_texts_are_embedded_in_batches_and_their_order_kept() -> None:
    texts = [row["text"] for row in rows(BATCH + 6, seed=1)]
    found, representation, runtime, progress = asyncio.run(asked(texts, embeddings))
    assert np.allclose(found, [unit(text) for text in texts], atol=1e-6)
    assert representation == "a" * 64 + "/layer-6/96"
    assert progress == [BATCH, BATCH + 6]
    assert [len(body["input"]) for path, body in runtime.posts if path == "/v1/embeddings"] == [BATCH, 6]


def test_a_model_that_fails_is_told() -> None:
    async def fails(body: dict[str, Any]) -> Any:
        return 400, {"error": {"code": "invalid_request", "message": "no"}}

    with pytest.raises(VectorsError, match='"rows" did not answer'):
        asyncio.run(asked(["x"], fails))


def test_the_command_asks_an_endpoint_and_remembers_whose_vectors_they_were(tmp_path: Path) -> None:
    data = written(tmp_path / "rows.jsonl", rows(60, seed=1, embeddings=False))

    async def work() -> dict[str, Any]:
        async with fake_runtime(CARD) as runtime:
            runtime.script["/v1/embeddings"] = embeddings
            words = ["--data", str(data), "--algorithm", "knn", "--output", str(tmp_path), "--endpoint", runtime.endpoint, "--embedding-model", "mini", "--json"]
            result = await asyncio.to_thread(CliRunner().invoke, train_command, words, catch_exceptions=False)
            return json.loads(result.stdout)  # type: ignore[no-any-return]

    assert asyncio.run(work())["accuracy"] > 0.6
    assert load(tmp_path / "knn").description.representation is not None
