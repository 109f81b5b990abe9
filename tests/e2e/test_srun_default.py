"""`vllm-srun serve` without arguments: three models of the package registry, each answers for its surface."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.runtime.worker_process import worker_process

QUESTIONS = {
    "topic": {"type": "choice", "instructions": "What is this about?", "criteria": {"delivery": "parcels and shipping", "weather": "rain and sunshine"}},
    "angry": {"type": "noul", "instructions": "Is the customer angry?"},
    "urgent": {"type": "score", "instructions": "How urgent is this?", "criteria": ["not at all", "somewhat", "very"]},
}  # fmt: skip


@pytest.mark.e2e
@pytest.mark.long
def test_the_default_set(tmp_path: Path) -> None:
    with worker_process(tmp_path, "--threads", "2") as worker:
        worker.until_status("ready", 300)
        cards = {card["id"]: card for card in worker.client.get("/v1/models").json()["data"]}
        assert list(cards) == ["all-minilm-l6-v2", "sparrow-nano", "smollm2-135m-instruct"]
        assert [card["surfaces"] for card in cards.values()] == [["embeddings"], ["decisions"], ["decisions"]]
        assert all(card["golden"]["status"] in ("matched", "unverified") for card in cards.values())
        assert cards["all-minilm-l6-v2"]["golden"]["status"] == "matched"
        vector = worker.embed("all-minilm-l6-v2", "The parcel never came.").json()["data"][0]["embedding"]
        assert len(vector) == 384
        assert sum(value * value for value in vector) == pytest.approx(1, abs=1e-4)
        for model in ("sparrow-nano", "smollm2-135m-instruct"):
            body = {"model": model, "state": "The parcel never came, and nobody answers my letters.", "questions": QUESTIONS}
            answers = worker.client.post("/v1/systemone", json=body).json()["answers"]
            assert list(answers) == list(QUESTIONS)
            assert sum(answers["topic"]["probabilities"].values()) == pytest.approx(1)
            assert 0 <= answers["angry"]["noul"] <= 1
            assert 0 <= answers["urgent"]["score"] <= 2
        assert worker.end() == 0
