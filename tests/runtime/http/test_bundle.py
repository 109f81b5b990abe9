"""Bundles: task by task, model by model."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.runtime.arithmetic_model import BREAKS, ArithmeticModel
from tests.runtime.http.test_bodies import PHASES, error, phases
from tests.runtime.live_worker import LiveWorker, live_worker

BUNDLE = "/v1/bundle"


def embed(identity: str, *texts: str, **more: Any) -> dict[str, Any]:
    return {"id": identity, "embeddings": {"input": list(texts), **more}}


def results(worker: LiveWorker, *tasks: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    response = worker.post(BUNDLE, {"tasks": list(tasks), **more})
    assert response.status_code == 200, response.text
    assert list(phases(response)) == PHASES
    found: list[dict[str, Any]] = response.json()["results"]
    assert [result["id"] for result in found] == [task["id"] for task in tasks]
    return found


def test_tasks_share_passes_and_equal_items_are_computed_once() -> None:
    model = ArithmeticModel()
    with live_worker({"m": model}) as worker:
        rerank = {"id": "r", "rerank": {"query": "q", "documents": ["same", "longer document"]}}
        found = results(worker, embed("a", "same"), {"id": "b", "classify": {"input": "same"}}, rerank)
        assert [result["status"] for result in found] == [200] * 3
        assert found[0]["embeddings"]["data"][0]["embedding"] == [sum(map(ord, "same")), 4]
        assert found[2]["rerank"]["results"][1]["logit"] == 15
        assert [len(rows) for rows in model.passes] == [2]
        assert worker.metric("vllm_srun_bundle_tasks_count") == 1


def test_what_is_wrong_with_a_task_is_its_own_failure() -> None:
    with live_worker({"m": ArithmeticModel()}, execution={"share_forwards": False}) as worker:
        found = results(
            worker, embed("ok", "x"), embed("field", "x", surprise=1), embed("model", "x", model="other"),
            embed("plan", "x", layer=4), embed("pass", BREAKS), {"id": "surface", "decisions": {"state": "a", "questions": {}}},
        )  # fmt: skip
        assert [result["status"] for result in found][:5] == [200, 400, 404, 400, 500]
        assert found[5]["status"] in (400, 422)
        assert [result["error"]["code"] for result in found[1:5]] == ["invalid_request", "model_not_found", "invalid_request", "internal_error"]


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"tasks": []},
        {"tasks": [embed("a", "x"), embed("a", "y")]},
        {"tasks": [embed("", "x")]},
        {"tasks": [{"id": "a"}]},
        {"tasks": [{"id": "a", "embeddings": {"input": "x"}, "classify": {"input": "x"}}]},
        {"tasks": [{"id": "a", "embeddings": "x"}]},
        {"tasks": [{"id": "a", "embeddings": {"input": "x"}, "more": 1}]},
        {"tasks": [embed("a", "x")], "options": {"return_meta": True}},
        {"tasks": "x"},
    ],
)
def test_malformed_bundles(worker: LiveWorker, body: Any) -> None:
    assert error(worker.post(BUNDLE, body)) == (400, "invalid_request")


def test_too_many_tasks() -> None:
    with live_worker({"m": ArithmeticModel()}, max_bundle_tasks=2) as worker:
        tasks = [embed(str(n), "x") for n in range(3)]
        assert error(worker.post(BUNDLE, {"tasks": tasks})) == (413, "request_too_large")
        assert results(worker, *tasks[:2])[1]["status"] == 200
        assert worker.client.get("/v1/models").json()["limits"]["max_bundle_tasks"] == 2


def test_the_tasks_of_a_model_are_admitted_together_or_not_at_all() -> None:
    blocked, free = ArithmeticModel(), ArithmeticModel()
    blocked.gate.clear()
    with live_worker({"blocked": blocked, "free": free}, execution={"max_queue": 2}) as worker:
        from tests.runtime.http.test_life import Asked

        first = Asked(worker, {"input": "x", "model": "blocked"})
        worker.until(lambda: worker.unanswered() == 1)
        asked = Asked(worker, {"tasks": [embed("1", "a", model="blocked"), embed("2", "b", model="blocked"), embed("3", "c", model="free")]}, BUNDLE)
        worker.until(lambda: worker.unanswered() == 2)  # "3" waits for the one device thread
        blocked.gate.set()
        assert [result["status"] for result in asked.wait().json()["results"]] == [429, 429, 200]
        assert first.wait().status_code == 200
        assert worker.unanswered() == 0


def test_the_bundles_deadline_is_that_of_all_its_tasks() -> None:
    model = ArithmeticModel()
    model.gate.clear()
    with live_worker({"m": model}) as worker:
        from tests.runtime.http.test_life import Asked

        first = Asked(worker, {"input": "x"})
        worker.until(lambda: worker.unanswered() == 1)
        tasks = [embed("1", "a"), embed("2", "b", options={"deadline_ms": 60_000})]
        asked = Asked(worker, {"tasks": tasks, "options": {"deadline_ms": 1}}, BUNDLE)
        worker.until(lambda: worker.unanswered() == 3 or asked.response is not None)
        time.sleep(0.05)  # the millisecond is over
        model.gate.set()
        found = asked.wait().json()["results"]
        assert [result["embeddings"]["data"][0]["error"] for result in found] == ["deadline_exceeded"] * 2
        assert first.wait().status_code == 200
