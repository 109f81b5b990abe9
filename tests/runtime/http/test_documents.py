"""`/v1/models`, `/metrics`, `/openapi.yaml`."""

from __future__ import annotations

from pathlib import Path

import yaml
from openai import OpenAI
from prometheus_client.parser import text_string_to_metric_families

from headway.runtime.http.app import PAGES, POSTS
from headway.runtime.http.openapi import openapi
from headway.runtime.served_model import Readiness, ServedModel
from tests.runtime.arithmetic_model import ArithmeticModel
from tests.runtime.live_worker import LiveWorker, live_worker

CARD = {
    "id", "object", "owned_by", "family", "repo", "revision", "model_sha256", "manifest_sha256", "surfaces", "question_types",
    "presets", "modalities", "heads", "embedding", "rerank", "limits", "licence", "parameters", "dtype", "engine", "accelerator",
    "accelerator_validated", "device", "enable_shared_context", "batch_window_ms", "max_num_seqs", "ready", "status", "reason",
    "golden", "plugins",
}  # fmt: skip


def test_models_for_openai_typesafe_and_the_router(worker: LiveWorker) -> None:
    body = worker.client.get("/v1/models").json()
    card = body["data"][0]
    assert card.keys() >= CARD
    assert card["surfaces"] == ["embeddings", "classify", "rerank"]
    assert card["heads"][0]["labels"] == ["even", "odd"]
    assert [entry.keys() for entry in body["models"]] == [{"name", "description", "release_date"}]
    assert body["limits"] == {"max_bundle_tasks": 64, "max_request_bytes": 8_388_608}
    with OpenAI(base_url=f"{worker.url}/v1", api_key="none") as client:
        assert [model.id for model in client.models.list()] == ["arithmetic"]
        assert client.embeddings.create(model="arithmetic", input="ab", encoding_format="float").data[0].embedding == [195.0, 2.0]


def test_a_card_before_the_model_is_loaded() -> None:
    with live_worker({"m": ArithmeticModel()}) as worker:
        model: ServedModel = worker.state.models.models[0]
        model.running, model.family, model.readiness = None, None, Readiness("loading", "resolving the model")
        card = worker.client.get("/v1/models").json()["data"][0]
        assert (card["id"], card["family"], card["surfaces"], card["ready"]) == ("m", "unknown", [], False)
        assert (card["status"], card["reason"]) == ("loading", "resolving the model")
        assert worker.client.get("/v1/systemone/models").json() == {"models": []}


def test_metrics_are_counted_and_hold_no_text(worker: LiveWorker) -> None:
    for _ in range(2):
        worker.post("/v1/embeddings", {"input": ["confidential", "b"]})
    worker.post("/v1/classify", {"input": "confidential", "head": "confidential"})
    text = worker.client.get("/metrics").text
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert "confidential" not in text
    expected = [
        "requests", "questions", "input_tokens", "request_duration_seconds", "queue_duration_seconds", "forward_duration_seconds",
        "batch_rows", "batch_tokens", "bundle_tasks", "truncated_inputs", "deadline_dropped_questions", "result_cache", "queue_depth", "ready",
        "model_info", "model_memory_bytes",
    ]  # fmt: skip
    assert {f"vllm_srun_{name}" for name in expected} == families.keys() - {f"vllm_srun_{name}_created" for name in expected}
    documented = Path(__file__).parents[3].joinpath("docs", "runtime.md").read_text()
    assert [name for name in expected if f"`vllm_srun_{name}" not in documented] == []
    assert worker.metric('vllm_srun_requests_total{endpoint="classify",status="400"}') == 1
    assert worker.metric('vllm_srun_result_cache_total{model="arithmetic",outcome="hit"}') >= 2
    assert worker.metric('vllm_srun_batch_rows_sum{model="arithmetic"}') >= 2
    assert worker.metric("vllm_srun_ready") == 1
    info = 'vllm_srun_model_info{accelerator="cpu",device="cpu",engine="native",family="arithmetic",model="arithmetic",revision="local"}'
    assert worker.metric(info) == 1


def test_the_description_has_every_route(worker: LiveWorker) -> None:
    response = worker.client.get("/openapi.yaml")
    assert response.headers["content-type"] == "application/yaml"
    assert yaml.safe_load(response.content) == openapi()
    assert {path for path, operations in openapi()["paths"].items() if "post" in operations} == POSTS.keys()
    assert {path for path, operations in openapi()["paths"].items() if "get" in operations} == PAGES.keys()
