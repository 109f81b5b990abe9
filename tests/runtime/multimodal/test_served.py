"""A fixture behind `vllm-srun serve`: text and image inputs over HTTP, as OpenAI's clients send them."""

from __future__ import annotations

import base64
from pathlib import Path

import numpy as np

from headway.wire.embeddings import Media, Text
from tests.runtime.multimodal.multimodal_models import MultimodalModels, ask, vectors
from tests.runtime.multimodal.pictures import png, png_of_zeros
from tests.runtime.worker_process import worker_process


def part(data: bytes) -> dict[str, object]:
    return {"type": "image_url", "image_url": {"url": "data:image/png;base64," + base64.b64encode(data).decode()}}


def test_texts_and_images_over_http(models: MultimodalModels, tmp_path: Path) -> None:
    folder = models.folder("clip")
    image = png(50, 40)
    expected = vectors(ask(models.load("clip"), Text("a photo of a cat"), Media("image", image)))
    environment = {"HEADWAY_CACHE": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "1"}
    with worker_process(tmp_path, str(folder), environment=environment) as worker:
        worker.until_status("ready")
        card = worker.client.get("/v1/models").json()["data"][0]
        assert (card["family"], card["modalities"], card["surfaces"]) == ("multimodal_embedding", ["text", "image"], ["embeddings"])
        assert card["embedding"]["modalities"] == ["text", "image"]
        body = {"model": "clip", "input": ["a photo of a cat", part(image), part(image[:200]), part(png_of_zeros(9_000, 9_000))]}
        answer = worker.client.post("/v1/embeddings", json=body)
        assert answer.status_code == 200
        data = answer.json()["data"]
        assert np.abs(np.array([entry["embedding"] for entry in data[:2]]) - expected).max() < 1e-5
        assert [entry.get("error") for entry in data] == [None, None, "invalid_input", "invalid_input"]
        assert "9000 x 9000 pixels" in data[3]["message"]
        again = worker.client.post("/v1/embeddings", json={**body, "encoding_format": "base64"}).json()["data"]
        assert np.frombuffer(base64.b64decode(again[1]["embedding"]), "<f4").tolist() == data[1]["embedding"]
        single = worker.client.post("/v1/embeddings", json={"model": "clip", "input": part(image)}).json()
        assert single["meta"]["representation"]["modality"] == "image"
        assert single["meta"]["representation"]["model_sha256"] == card["model_sha256"]
        refused = worker.client.post("/v1/embeddings", json={"model": "clip", "input": part(b"???")})
        assert (refused.status_code, refused.json()["error"]["message"]) == (400, "the input is no PNG, JPEG or WebP image")
        assert "???" not in worker.log
        assert worker.end() == 0
