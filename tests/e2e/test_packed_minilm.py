"""MiniLM in formats of compressed-tensors, written by that library, behind a real worker process."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from headway.artifacts.resolve import resolve
from tests.models.encoders.packed_encoders import is_matrix
from tests.quantization.library_writer import written_by_the_library
from tests.runtime.worker_process import worker_process

TEXTS = [
    "How do I reverse a linked list in Python without recursion?", "The parcel never came, and nobody answers my letters.",
    "Cats sleep most of the day.", "The central bank raised its rate by half a point. " * 12, "Bitte rufen Sie mich unter 0555 1234 an.", "a",
]  # fmt: skip
ENGLISH = slice(0, 4)  # what the model was trained on; four bits rounded to nearest keep less of the rest


@pytest.mark.e2e
def test_int4_int8_and_fp8_beside_the_original(tmp_path: Path) -> None:
    source = resolve("all-minilm-l6-v2")
    folders = [written_by_the_library(source, tmp_path / method, method, is_matrix) for method in ("int4", "int8", "fp8")]
    sizes = {folder.name: (folder / "model.safetensors").stat().st_size for folder in folders}
    assert sizes["int4"] < 0.65 * (source / "model.safetensors").stat().st_size  # the embedding is half of it
    with worker_process(tmp_path, str(source), *map(str, folders), "--threads", "1", environment={"HEADWAY_CACHE": str(tmp_path / "cache")}) as worker:
        health = worker.until_status("degraded", 90)  # three serve, one cannot
        states = health["models"]
        assert {name: state["status"] for name, state in states.items()} == {source.name: "ready", "int4": "ready", "int8": "ready", "fp8": "failed"}
        assert "FP8 weights need an NVIDIA GPU of compute capability 8.9 or later or an AMD Instinct MI300 or MI350 series GPU" in states["fp8"]["reason"]
        assert states["int4"]["quantization"] == "compressed-tensors int4, groups of 32, zero points"
        cards = {card["id"]: card for card in worker.client.get("/v1/models").json()["data"]}
        assert {name: cards[name]["quantization"] for name in (source.name, "int8")} == {source.name: None, "int8": "compressed-tensors int8, a scale for each output"}
        assert cards["int4"]["parameters"] == cards["int8"]["parameters"] == cards[source.name]["parameters"]
        assert cards["int4"]["golden"]["status"] == "unverified"

        def vectors(model: str) -> np.ndarray:
            answer = worker.client.post("/v1/embeddings", json={"model": model, "input": TEXTS})
            return np.array([entry["embedding"] for entry in answer.json()["data"]])

        for method in ("int4", "int8"):  # what the library reads back of what it wrote
            oracle = np.array(SentenceTransformer(str(tmp_path / f"{method}-read"), device="cpu").encode(TEXTS))
            assert (vectors(method) * oracle).sum(-1).min() >= 0.9999
        exact = vectors(source.name)
        assert (vectors("int8") * exact).sum(-1).min() >= 0.999
        four = (vectors("int4") * exact).sum(-1)
        assert 0.97 <= four[ENGLISH].mean() < 0.9999
        refused = worker.embed("fp8")
        assert (refused.status_code, refused.json()["error"]["code"]) == (503, "not_ready")
        assert worker.end() == 0
