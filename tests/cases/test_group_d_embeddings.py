"""D13: size, norm and encoding of embeddings, over HTTP and by the official client."""

from __future__ import annotations

import base64
from collections.abc import Iterator

import numpy as np
import openai
import pytest

from tests.runtime.live_worker import LiveWorker, live_worker
from tests.runtime.tasks.task_models import TaskModels


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveWorker]:
    models = TaskModels(tmp_path_factory.mktemp("tasks"))
    with live_worker({"nested": models.load("nested-modernbert"), "plain": models.load("embedding-bert")}) as running:
        yield running


@pytest.mark.parametrize(("asked", "size"), [(None, 64), (16, 16), (64, 64), (65, None), (0, None), (-1, None), ("64", None), (17, None)])
def test_d13_dimensions(worker: LiveWorker, asked: object, size: int | None) -> None:
    body = {"model": "nested", "input": ["a text", "b"]} | ({} if asked is None else {"dimensions": asked})
    answer = worker.post("/v1/embeddings", body)
    if size is None:
        assert answer.status_code == 400
        assert "dimensions" in answer.json()["error"]["message"]
        return
    assert answer.status_code == 200
    for entry in answer.json()["data"]:
        assert len(entry["embedding"]) == size
        assert abs(np.linalg.norm(entry["embedding"]) - 1) < 1e-3
    assert answer.json()["meta"]["representation"] == {"model_sha256": "0" * 64, "layer": 3, "dimension": size, "normalized": True}


def test_d13_a_model_without_nested_sizes_refuses_dimensions(worker: LiveWorker) -> None:
    assert worker.post("/v1/embeddings", {"model": "plain", "input": "a", "dimensions": 32}).status_code == 400


def test_d13_encodings(worker: LiveWorker) -> None:
    def embed(**more: object) -> object:
        answer = worker.post("/v1/embeddings", {"model": "nested", "input": ["one", "two"], **more})
        assert answer.status_code == 200
        return [entry["embedding"] for entry in answer.json()["data"]]

    plain = embed()
    assert plain == embed(encoding_format="float")
    coded = [np.frombuffer(base64.b64decode(text), dtype="<f4").tolist() for text in embed(encoding_format="base64")]
    assert coded == [np.float32(numbers).tolist() for numbers in plain]
    assert worker.post("/v1/embeddings", {"model": "nested", "input": "a", "encoding_format": "hex"}).status_code == 400


def test_d13_shapes_order_and_counts(worker: LiveWorker) -> None:
    def post(given: object) -> tuple[int, list[dict]]:
        answer = worker.post("/v1/embeddings", {"model": "plain", "input": given})
        return answer.status_code, answer.json().get("data", [])

    texts = ["the cafeteria", "opens", "the cafeteria", "at eight", "the cafeteria"]
    status, data = post(texts)
    assert status == 200
    assert [entry["index"] for entry in data] == list(range(5))
    assert data[0]["embedding"] == data[2]["embedding"] == data[4]["embedding"] != data[1]["embedding"]
    assert [post(text)[1][0]["embedding"] for text in texts[:2]] == [entry["embedding"] for entry in data[:2]]
    assert len(post([7, 8, 9])[1]) == 1
    assert len(post([[7, 8], [9]])[1]) == 2
    assert post(["a"] * 2049)[0] == 400
    assert post("")[0] == 400
    assert post("  \n")[0] == 400
    assert [("error" in entry) for entry in post(["", "a", " "])[1]] == [True, False, True]


def test_d13_the_official_client(worker: LiveWorker) -> None:
    """It asks for base64 unless told otherwise, and decodes what it gets."""
    client = openai.OpenAI(base_url=f"{worker.url}/v1", api_key="none", max_retries=0)
    found = client.embeddings.create(model="nested", input=["a text", "another"], dimensions=32)
    assert [len(entry.embedding) for entry in found.data] == [32, 32]
    plain = client.embeddings.create(model="nested", input=["a text", "another"], dimensions=32, encoding_format="float")
    assert np.allclose([entry.embedding for entry in found.data], [entry.embedding for entry in plain.data], atol=1e-7)
    assert found.usage.prompt_tokens == found.usage.total_tokens > 4
    with pytest.raises(openai.BadRequestError, match="the limit is 512"):
        client.embeddings.create(model="nested", input="word " * 3000)
