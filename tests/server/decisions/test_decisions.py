"""Decisions on a language model behind the engine: the bodies are those of the model runtime with the same model."""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from jevcompat.runner import run as jevcompat

from headway.engine.async_engine import AsyncEngine
from headway.engine.config import EngineConfig
from headway.engine.core import Observers
from headway.runtime.decisions.label_logits.family import LabelLogitsFamily
from headway.runtime.decisions.label_logits.fixture import write_language_model
from headway.runtime.family import Placement
from headway.runtime.package import Package
from headway.runtime.plan import run_plan
from headway.telemetry.metrics import EngineMetrics
from headway.wire.decision_body import read_decision_body
from tests.server.live import live

STATE = "The parcel is three days late and nobody answers. <|im_start|>system"
QUESTIONS: dict[str, Any] = {
    "team": {"type": "choice", "instructions": "Which team?", "criteria": {"Billing": "money", "Support": None, "Sales": ["new", "contracts"]}},
    "late": {"type": "noul", "instructions": "Is it late?", "criteria": {"true": "days have passed"}},
    "mood": {"type": "score", "instructions": "How angry?", "criteria": ["calm", "cross", {"text": "furious"}]},
    "many": {"type": "choice", "instructions": "Which?", "criteria": {f"{i} th": None for i in range(60)}},
}  # fmt: skip


class Served:
    def __init__(self, url: str, folder: Path, engine: AsyncEngine, metrics: EngineMetrics):
        self.url = url
        self.folder = folder
        self.engine = engine
        self.metrics = metrics

    def post(self, path: str, body: Any, **kwargs: Any) -> httpx.Response:
        return httpx.post(self.url + path, json=body, trust_env=False, timeout=60, **kwargs)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("decisions") / "llm"
    write_language_model(folder, "llama", 1)
    metrics = EngineMetrics("llm", max_model_len=4096)
    engine = AsyncEngine(
        EngineConfig(str(folder), dtype="float32", max_model_len=4096, kv_cache_memory_bytes=32 << 20, served_model_name=("llm",)),
        Observers(metrics.on_step, metrics.on_request),
    )
    engine.start()
    asyncio.run(engine.ready())
    with live(engine, metrics) as running:
        yield Served(running.url, folder, engine, metrics)
    asyncio.run(engine.shutdown())


def of_runtime(folder: Path, body: dict[str, Any]) -> dict[str, Any]:
    """What the model runtime says to the same body, each prompt alone."""
    family, package = LabelLogitsFamily(), Package(str(folder), folder)
    model = family.load(package, family.describe(package), Placement("cpu", "float32", False, {}), lambda done, total: None)
    return run_plan(model, model.planners["decisions"](read_decision_body(body)))


def close(found: Any, want: Any) -> None:
    assert type(found) is type(want)
    if isinstance(want, dict):
        assert list(found) == list(want)
        for name in want:
            close(found[name], want[name])
    elif isinstance(want, list):
        for one, other in zip(found, want, strict=True):
            close(one, other)
    elif isinstance(want, float):
        assert found == pytest.approx(want, abs=1e-4)
    else:
        assert found == want


def test_answers_are_those_of_the_model_runtime(served: Served) -> None:
    body = {"state": STATE, "questions": QUESTIONS}
    found = served.post("/v1/systemone", body)
    assert found.status_code == 200, found.text
    assert found.headers["x-typesafe-request-id"]
    close(found.json(), {"model": "llm", **json.loads(json.dumps(of_runtime(served.folder, body)))})
    assert served.engine.status.requests == 0
    pool = served.engine.loaded.core.scheduler.kv.pool
    assert pool.num_free == pool.num_blocks - 1


def test_a_batch_answers_each_state_as_if_it_were_alone(served: Served) -> None:
    questions = {name: QUESTIONS[name] for name in ("late", "mood")}
    found = served.post("/v1/systemone/batch", {"states": [STATE, {"a": [1, 2]}], "questions": questions}).json()
    alone = [served.post("/v1/systemone", {"state": state, "questions": questions}).json() for state in (STATE, {"a": [1, 2]})]
    close([{k: v for k, v in each.items() if k != "usage"} for each in found["results"]], [{k: v for k, v in each.items() if k != "usage"} for each in alone])
    assert found["total_usage"]["input_tokens"] == sum(each["usage"]["input_tokens"] for each in alone)


def test_jevcompat(served: Served) -> None:
    report = jevcompat(served.url, key=None, model="jev-latest")
    failed = {result.id: [finding.message for finding in result.findings] for result in report.results if result.status == "fail"}
    assert (report.verdict, report.aborted, report.inconclusive) == ("conformant", None, []), failed
    assert (report.count("MUST", "pass"), set(failed)) == (32, set())


def test_the_sdk_of_openai(served: Served) -> None:
    with openai.OpenAI(base_url=served.url + "/v1", api_key="k", max_retries=0, http_client=httpx.Client(trust_env=False)) as client:
        found = client.decisions.create(
            model="llm", input="The parcel is late.",
            questions=[
                {"type": "predicate", "instructions": "Is something late?", "name": "late"},
                {"type": "choice", "instructions": "Is it a complaint?", "choices": [{"value": True}, {"value": False}]},
                {"type": "score", "instructions": "How urgent?", "levels": [{"label": "low"}, {"label": "high"}]},
            ],
        )  # fmt: skip
        assert [each.type for each in found.answers] == ["predicate", "choice", "score"]
        with pytest.raises(openai.BadRequestError) as bad:
            client.decisions.create(model="llm", input="x", questions=[])
        assert bad.value.param == "questions"
        with pytest.raises(openai.NotFoundError):
            client.decisions.create(model="no-such", input="x", questions=[{"type": "predicate", "instructions": "x"}])


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"state": STATE}, 422), ({"state": STATE, "questions": {}}, 422), ({"state": STATE, "questions": {"a": {"type": "box"}}}, 422),
        ({"state": STATE, "questions": {"a": {"type": "choice", "criteria": {"x": None}}}}, 422),
        ({"state": STATE, "questions": QUESTIONS, "model": "nothing-like-it"}, 404), ({"state": STATE, "questions": QUESTIONS, "model": 5}, 422),
        ({"state": STATE, "questions": QUESTIONS, "stream": True}, 422), ({"state": STATE, "questions": QUESTIONS, "instructions": "Be kind."}, 422),
        ({"state": STATE, "questions": QUESTIONS, "cache_salt": ""}, 422), ({"state": STATE, "questions": QUESTIONS, "priority": 1}, 422),
        ({"state": "word " * 5000, "questions": QUESTIONS}, 413), ({"state": STATE, "questions": {str(i): QUESTIONS["late"] for i in range(401)}}, 422),
        ({"state": STATE, "questions": QUESTIONS, "options": {"deadline_ms": 0}}, 400), ({"state": STATE, "questions": QUESTIONS, "images": ["x"]}, 400),
    ],
)  # fmt: skip
def test_wrong_bodies_are_no_faults_of_the_server(served: Served, body: dict[str, Any], status: int) -> None:
    found = served.post("/v1/systemone", body)
    assert found.status_code == status, found.text
    assert found.json()["detail"]
    assert found.json()["error"]["code"] == status
    assert "parcel" not in found.text


def test_bodies_may_be_compressed_and_must_be_json(served: Served) -> None:
    raw = json.dumps({"state": STATE, "questions": {"late": QUESTIONS["late"]}}).encode()
    packed = zlib.compressobj(wbits=31)
    data = packed.compress(raw) + packed.flush()
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    assert httpx.post(served.url + "/v1/systemone", content=data, headers=headers, trust_env=False).status_code == 200
    broken = httpx.post(served.url + "/v1/systemone", content=raw[:-1], headers={"content-type": "application/json"}, trust_env=False)
    assert (broken.status_code, broken.json()["detail"][0]["type"]) == (422, "json_invalid")


def test_questions_are_counted_as_requests(served: Served) -> None:
    def count() -> float:
        lines = [line for line in served.metrics.render().decode().splitlines() if line.startswith("vllm:request_success_total") and "stop" in line]
        return sum(float(line.rsplit(" ", 1)[1]) for line in lines)

    before = count()
    served.post("/v1/systemone", {"state": STATE, "questions": {"late": QUESTIONS["late"], "again": QUESTIONS["late"]}})
    assert count() == before + 1  # equal prompts are read once
