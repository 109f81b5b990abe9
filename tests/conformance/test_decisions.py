"""Other people's programs against a real worker process: jevcompat, jevbench, the SDKs of TypeSafe and OpenAI."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import jevbench
import openai
import pytest
import typesafe_sdk
import zstandard
from jevbench.suites import load_suite
from jevcompat.runner import run

from headway.runtime.settings import WorkerSettings
from tests.conformance.decision_worker import KEY, MODELS, decision_worker
from tests.runtime.worker_process import WorkerProcess

MUST, SHOULD, SHOULD_WITH_KEY = 32, 13, 15


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("decisions")


@pytest.fixture(scope="module")
def worker(folder: Path) -> Iterator[WorkerProcess]:
    with decision_worker(folder) as worker:
        yield worker


@pytest.fixture(scope="module")
def locked(folder: Path) -> Iterator[WorkerProcess]:
    """The same with a key."""
    with decision_worker(folder, "--api-key", KEY) as worker:
        yield worker


def _check(url: str, key: str | None, model: str) -> tuple[int, int]:
    report = run(url, key=key, model=model)
    failed = {result.id: [finding.message for finding in result.findings] for result in report.results if result.status == "fail"}
    assert (report.verdict, failed, report.aborted, report.inconclusive) == ("conformant", {}, None, [])
    return report.count("MUST", "pass"), report.count("SHOULD", "pass")


@pytest.mark.parametrize("model", ["jev-latest", *MODELS])
def test_jevcompat_without_a_key(worker: WorkerProcess, model: str) -> None:
    assert _check(worker.url, None, model) == (MUST, SHOULD)


@pytest.mark.parametrize("model", MODELS)
def test_jevcompat_with_a_key(locked: WorkerProcess, model: str) -> None:
    assert _check(locked.url, KEY, model) == (MUST, SHOULD_WITH_KEY)


@pytest.mark.parametrize("model", MODELS)
def test_jevbench_finds_questions_isolated_and_answers_repeatable(worker: WorkerProcess, model: str) -> None:
    cases = sorted(load_suite("jevbench-240").cases, key=lambda case: len(str(case.state)))[:3]
    backend = jevbench.systemone(f"{worker.url}/v1/systemone", model)
    report = jevbench.evaluate(backend, cases=cases, dimensions=["BAT"], repeats=3, cache=None, min_n=1)
    assert report.scores["pillars"]["BAT"] == 1
    assert report.scores["mean_repeat_noise"] < 1e-15  # the mean of three equal numbers, as jevbench takes it, may differ in the last bit
    assert report.errors == []


@pytest.mark.parametrize("model", MODELS)
def test_the_same_request_has_the_same_bytes(worker: WorkerProcess, model: str) -> None:
    questions = {"a": {"type": "noul", "instructions": "Late?"}, "b": {"type": "score", "criteria": ["low", "high"]}}
    body = {"model": model, "state": "The parcel is late.", "questions": questions}
    assert len({httpx.post(f"{worker.url}/v1/systemone", json=body | {"x_nonce": i}, trust_env=False).content for i in range(3)}) == 1


def test_the_sdk_of_typesafe(locked: WorkerProcess) -> None:
    questions: dict[str, Any] = {
        "refund": typesafe_sdk.Noul(instructions="Is a refund asked for?"),
        "team": typesafe_sdk.Choice(instructions="Who?", criteria={"Billing": "money", "Support": None}),
        "mood": typesafe_sdk.Score(instructions="How angry?", criteria=["calm", "angry"]),
    }
    with typesafe_sdk.TypeSafeClient(api_key=KEY, base_url=locked.url) as client:
        answer = client.system_one(state={"text": "I want my money back."}, questions=questions)
        assert 0 <= answer.nouls["refund"].noul <= 1
        assert answer.choices["team"].choice in ("Billing", "Support")
        assert answer.scores["mood"].legend == {0: "calm", 1: "angry"}
        assert answer.request_id
        assert [model.name for model in client.models.list().models] == list(MODELS)
        with pytest.raises(typesafe_sdk.TypeSafeNotFoundError, match="does not exist here"):
            client.system_one(state="x", questions=questions, model="nothing-like-it")
    with typesafe_sdk.TypeSafeClient(api_key="wrong", base_url=locked.url) as client, pytest.raises(typesafe_sdk.TypeSafeAuthenticationError):
        client.system_one(state="x", questions=questions)


@pytest.mark.parametrize("model", [*MODELS, *WorkerSettings().decision_alias])
def test_the_sdk_of_openai(worker: WorkerProcess, model: str) -> None:
    client = openai.OpenAI(base_url=f"{worker.url}/v1", api_key="none", max_retries=0)
    found = client.decisions.create(
        model=model,
        input=[{"role": "user", "content": [{"type": "input_text", "text": "The parcel is late."}]}],
        questions=[
            {"type": "predicate", "instructions": "Is something late?", "name": "late"},
            {"type": "choice", "instructions": "Is it a complaint?", "choices": [{"value": True}, {"value": False, "description": "no"}]},
            {"type": "score", "instructions": "How urgent?", "levels": [{"label": "low"}, {"label": "high"}]},
        ],
    )
    late, complaint, urgent = found.answers
    assert late.type == "predicate"
    assert late.name == "late"
    assert complaint.type == "choice"
    assert isinstance(complaint.choice, bool)
    assert sum(each.probability for each in complaint.probabilities) == pytest.approx(1)
    assert urgent.type == "score"
    assert [each.label for each in urgent.probabilities] == ["low", "high"]
    assert found.usage.total_tokens == found.usage.input_tokens > 0
    with pytest.raises(openai.BadRequestError) as caught:
        client.decisions.create(model=model, input="x", questions=[{"type": "choice", "instructions": "?", "choices": [{"value": "a"}]}])
    assert caught.value.param == "questions[0].choices"


def test_bodies_that_the_sdk_compresses(worker: WorkerProcess) -> None:
    """The SDK compresses from 1 KiB on where Python has zstd; here it is done by hand, with the same header."""
    body = json.dumps({"model": "static", "state": {"text": "late", "padding": "           " * 100}, "questions": {"q": {"type": "noul", "instructions": "Late?"}}}).encode()
    plain = httpx.post(f"{worker.url}/v1/systemone", content=body, headers={"content-type": "application/json"}, trust_env=False)
    packed = httpx.post(
        f"{worker.url}/v1/systemone", content=zstandard.compress(body), trust_env=False,
        headers={"content-type": "application/json", "content-encoding": "zstd"},
    )  # fmt: skip
    assert packed.status_code == plain.status_code == 200
    assert packed.json() == plain.json()
