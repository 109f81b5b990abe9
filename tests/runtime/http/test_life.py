"""Requests in trouble: queues that are full, clients that leave, deadlines, passes that fail, models that are not ready."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from headway.http.shutdown import drain
from headway.runtime.served_model import Readiness
from tests.runtime.arithmetic_model import BREAKS, ArithmeticModel
from tests.runtime.http.test_bodies import PHASES, error, phases
from tests.runtime.live_worker import LiveWorker, live_worker

EMBEDDINGS = "/v1/embeddings"


class Asked:
    """A POST on a thread of its own."""

    def __init__(self, worker: LiveWorker, body: Any, path: str = EMBEDDINGS, timeout: float = 20):
        self.response: httpx.Response | None = None
        self.left = False

        def ask() -> None:
            try:
                self.response = httpx.post(worker.url + path, json=body, timeout=timeout, trust_env=False)
            except httpx.ReadTimeout:
                self.left = True

        self._thread = threading.Thread(target=ask, daemon=True)
        self._thread.start()

    def wait(self) -> httpx.Response:
        self._thread.join(20)
        assert self.response is not None
        return self.response


@pytest.fixture
def held() -> Iterator[tuple[ArithmeticModel, LiveWorker]]:
    """A worker whose passes wait for the gate."""
    model = ArithmeticModel()
    model.gate.clear()
    with live_worker({"m": model}, execution={"max_queue": 2}) as worker:
        yield model, worker
        model.gate.set()


def test_a_full_queue(held: tuple[ArithmeticModel, LiveWorker]) -> None:
    model, worker = held
    waiting = [Asked(worker, {"input": text}) for text in ("a", "b")]
    worker.until(lambda: worker.unanswered() == 2)
    refused = worker.post(EMBEDDINGS, {"input": "c"})
    assert error(refused) == (429, "overloaded")
    assert refused.headers["retry-after"] == "1"
    assert list(phases(refused)) == PHASES
    assert worker.metric('vllm_srun_queue_depth{model="m"}') == 2
    model.gate.set()
    assert [asked.wait().status_code for asked in waiting] == [200, 200]
    worker.until(lambda: worker.unanswered() == 0)
    assert worker.post(EMBEDDINGS, {"input": "c"}).status_code == 200


def test_bodies_of_many_clients_at_once_are_bounded(held: tuple[ArithmeticModel, LiveWorker]) -> None:
    model, worker = held
    worker.state.bodies.limit = 1000
    large = Asked(worker, {"input": "x" * 900})
    worker.until(lambda: worker.unanswered() == 1)
    refused = worker.post(EMBEDDINGS, {"input": "y" * 200})
    assert error(refused) == (429, "overloaded")
    chunked = worker.client.post(EMBEDDINGS, content=iter([b'{"input": "z"}']), headers={"content-type": "application/json"})
    assert error(chunked) == (429, "overloaded")  # its size is unknown: it might be the largest
    model.gate.set()
    assert large.wait().status_code == 200
    worker.until(lambda: worker.state.bodies.held == 0)
    assert worker.post(EMBEDDINGS, {"input": "y" * 3000}).status_code == 200  # too large a one comes in alone


def test_a_client_that_leaves_during_a_pass_and_one_that_leaves_the_queue(held: tuple[ArithmeticModel, LiveWorker]) -> None:
    model, worker = held
    running = Asked(worker, {"input": "running"}, timeout=0.3)
    assert model.entered.wait(10)
    queued = Asked(worker, {"input": "queued"}, timeout=0.3)
    worker.until(lambda: worker.unanswered() == 2)
    worker.until(lambda: worker.unanswered() == 0)
    model.gate.set()
    assert worker.post(EMBEDDINGS, {"input": "next"}).status_code == 200
    assert [len(rows) for rows in model.passes] == [1, 1]  # the one in the queue was never computed
    assert running.left
    assert queued.left
    assert worker.metric('vllm_srun_requests_total{endpoint="embeddings",status="499"}') == 2


def test_a_deadline_counts_from_arrival(held: tuple[ArithmeticModel, LiveWorker]) -> None:
    model, worker = held
    first = Asked(worker, {"input": "a"})
    assert model.entered.wait(10)
    late = Asked(worker, {"input": ["b", "c"], "options": {"deadline_ms": 1}})
    worker.until(lambda: worker.unanswered() == 2 or late.response is not None)
    model.gate.set()
    response = late.wait()
    assert response.status_code == 200
    assert [item["error"] for item in response.json()["data"]] == ["deadline_exceeded"] * 2
    assert first.wait().status_code == 200
    assert worker.metric("vllm_srun_deadline_dropped_questions_total") == 2


def test_a_pass_that_fails(caplog: pytest.LogCaptureFixture) -> None:
    with live_worker({"m": ArithmeticModel()}) as worker, caplog.at_level(logging.DEBUG):
        response = worker.post(EMBEDDINGS, {"input": "secret text " + BREAKS})
        assert error(response) == (500, "internal_error")
        assert list(phases(response)) == PHASES
        assert worker.post(EMBEDDINGS, {"input": "a"}).status_code == 200
        assert worker.unanswered() == 0
    assert "secret" not in caplog.text
    assert "ZeroDivisionError" in caplog.text


def test_a_plan_that_breaks(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(request: Any) -> Any:
        yield from ()
        raise KeyError("secret text")

    model = ArithmeticModel()
    monkeypatch.setitem(model.planners, "embeddings", broken)  # type: ignore[misc]
    with live_worker({"m": model}) as worker, caplog.at_level(logging.DEBUG):
        assert error(worker.post(EMBEDDINGS, {"input": "secret text"})) == (500, "internal_error")
    assert "secret" not in caplog.text
    assert "KeyError" in caplog.text


def test_a_number_that_json_cannot_carry(monkeypatch: pytest.MonkeyPatch) -> None:
    def infinite(request: Any) -> Any:
        yield from ()
        return {"value": float("inf")}

    model = ArithmeticModel()
    monkeypatch.setitem(model.planners, "classify", infinite)  # type: ignore[misc]
    with live_worker({"m": model}) as worker:
        assert error(worker.post("/v1/classify", {"input": "a"})) == (500, "internal_error")
        bundle = {"tasks": [{"id": "1", "classify": {"input": "a"}}, {"id": "2", "embeddings": {"input": "a"}}]}
        assert [result["status"] for result in worker.post("/v1/bundle", bundle).json()["results"]] == [500, 200]


STATES = [
    (("ready", "ready"), "ready"),
    (("warming", "loading"), "loading"),
    (("failed", "starting"), "starting"),
    (("failed", "ready"), "degraded"),
    (("degraded", "ready"), "degraded"),
    (("failed", "failed"), "failed"),
]


@pytest.mark.parametrize(("states", "overall"), STATES)
def test_health(states: tuple[Any, Any], overall: str) -> None:
    with live_worker({"a": ArithmeticModel(), "b": ArithmeticModel()}) as worker:
        for model, state in zip(worker.state.models.models, states, strict=True):
            model.readiness = Readiness(state, None if state == "ready" else f"why {model.name}")
        response = worker.client.get("/health")
        assert response.status_code == (200 if overall == "ready" else 503)
        body = response.json()
        assert body["status"] == overall
        assert body["model"] is None
        assert body["models"]["a"]["status"] == states[0]
        assert (body["reason"] is None) == (overall == "ready")
        assert worker.client.get("/health/live").json() == {"api_version": body["api_version"], "status": "alive"}
        if states[1] != "ready":
            refused = worker.post(EMBEDDINGS, {"input": "x", "model": "b"})
            assert error(refused) == (503, "not_ready")
            assert "why b" in refused.json()["error"]["message"]
            assert refused.headers["retry-after"] == "2"


def test_the_end_of_a_worker(held: tuple[ArithmeticModel, LiveWorker]) -> None:
    model, worker = held
    asked = Asked(worker, {"input": "a"})
    assert model.entered.wait(10)
    asyncio.run_coroutine_threadsafe(drain(worker.state, 0.0), worker.loop).result(10)
    assert error(asked.wait()) == (503, "not_ready")
    assert error(worker.post(EMBEDDINGS, {"input": "b"})) == (503, "not_ready")
    assert worker.client.get("/health").status_code == 503
    assert worker.state.load == 0
