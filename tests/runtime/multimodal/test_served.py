"""A fixture behind `vllm-srun serve`: text and image inputs over HTTP, as OpenAI's clients send them."""

from __future__ import annotations

import base64
import threading
from collections.abc import Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headway.wire.embeddings import EmbeddingsRequest, Media, Text
from tests.runtime.live_worker import live_worker
from tests.runtime.multimodal.multimodal_models import MultimodalModels, ask, vectors
from tests.runtime.multimodal.pictures import png, png_of_zeros
from tests.runtime.multimodal.sounds import tones, wav
from tests.runtime.worker_process import worker_process


def part(data: bytes) -> dict[str, object]:
    return {"type": "image_url", "image_url": {"url": "data:image/png;base64," + base64.b64encode(data).decode()}}


def test_texts_images_and_sounds_over_http(models: MultimodalModels, tmp_path: Path) -> None:
    folder = models.folder("clip")
    image = png(50, 40)
    expected = vectors(ask(models.load("clip"), Text("a photo of a cat"), Media("image", image)))
    samples = wav(tones(44_100, 0.1, 2), 44_100)
    sound = {"type": "input_audio", "input_audio": {"format": "wav", "data": base64.b64encode(samples).decode()}}
    expected_omni = vectors(ask(models.load("omni-nano"), Media("audio", samples), Text("a text"), Media("image", image)))
    environment = {"HEADWAY_CACHE": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "1"}
    with worker_process(tmp_path, str(folder), str(models.folder("omni-nano")), environment=environment) as worker:
        worker.until_status("ready")
        card, omni = worker.client.get("/v1/models").json()["data"]
        assert (omni["id"], omni["modalities"], omni["golden"]["checked"]) == ("omni-nano", ["text", "image", "audio"], 3)
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
        assert np.frombuffer(base64.b64decode(again[1]["embedding"]), "<f4").tolist() == np.float32(data[1]["embedding"]).tolist()
        single = worker.client.post("/v1/embeddings", json={"model": "clip", "input": part(image)}).json()
        assert single["meta"]["representation"]["modality"] == "image"
        assert single["meta"]["representation"]["model_sha256"] == card["model_sha256"]
        heard = worker.client.post("/v1/embeddings", json={"model": "omni-nano", "input": [sound, "a text", part(image)]}).json()["data"]
        assert np.abs(np.array([entry["embedding"] for entry in heard]) - expected_omni).max() < 1e-5
        refused = worker.client.post("/v1/embeddings", json={"model": "clip", "input": part(b"???")})
        assert (refused.status_code, refused.json()["error"]["message"]) == (400, "the input is no PNG, JPEG or WebP image")
        assert "???" not in worker.log
        assert worker.end() == 0


def test_small_bodies_with_media_are_planned_off_the_event_loop(models: MultimodalModels, monkeypatch: pytest.MonkeyPatch) -> None:
    """A picture of a few bytes may take a second to decode."""
    model = models.load("clip")
    threads: list[str] = []
    planner = model.planners["embeddings"]

    def watched(request: EmbeddingsRequest) -> Generator[Any, Any, dict[str, Any]]:
        def plan() -> Generator[Any, Any, dict[str, Any]]:
            threads.append(threading.current_thread().name)
            return (yield from planner(request))

        return plan()

    monkeypatch.setattr(model, "planners", {"embeddings": watched})
    with live_worker({"clip": model}) as worker:
        image, text = {"model": "clip", "input": part(png(8, 8))}, {"model": "clip", "input": "a text"}
        assert worker.post("/v1/embeddings", image).status_code == 200
        assert worker.post("/v1/bundle", {"tasks": [{"id": "a", "embeddings": image}]}).json()["results"][0]["status"] == 200
        assert [name.startswith("planning") for name in threads] == [True, True]
        assert worker.post("/v1/embeddings", text).status_code == 200
        assert not threads[-1].startswith("planning")
