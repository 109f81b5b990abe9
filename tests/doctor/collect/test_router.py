"""The walk through a router: a ready one, one that loads, one whose signals are unknown, and nobody there."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headway.doctor.collect.endpoint import client_for
from headway.doctor.collect.router import RouterPlace, Step, averages, place_of, walk
from headway.doctor.collect.transcript import Transcript
from tests.doctor.collect.web import Answer, answering

READY = {"ready": True, "phase": "ready", "message": "serving", "model_deployments": [{"name": "judge", "ready": True, "state": "ready", "reason": ""}]}
LOADING = {
    "ready": False,
    "phase": "starting",
    "message": "waits",
    "model_deployments": [
        {"name": "judge", "artifact": "org/m", "ready": False, "state": "failed", "reason": "ArtifactError: a file hash does not match"},
        {"name": "other", "artifact": "org/o", "ready": False, "state": "loading", "reason": ""},
    ],
}
METRICS = """llm_signal_extraction_total{signal="a"} 4
llm_signal_match_total{signal="a"} 1
llm_routing_stage_duration_seconds_sum{stage="signals"} 0.4
llm_routing_stage_duration_seconds_count{stage="signals"} 4
llm_routing_stage_duration_seconds_sum{stage="selection"} 0.01
llm_routing_stage_duration_seconds_count{stage="selection"} 4
"""


def walked(answers: dict[str, Answer]) -> tuple[dict[str, Step], dict[str, Any], list[str]]:
    said = Transcript()
    with answering(answers) as url, client_for(None, timeout=2.0) as client:
        steps, part = walk(client, RouterPlace(url, url, url), "hello", said)
    return {step.name.en: step for step in steps}, part, said.lines


def as_json(status: int, value: object) -> Answer:
    return status, json.dumps(value)


def test_a_router_that_is_ready() -> None:
    preview = {"signal_errors": {}, "decision_result": {"decision_name": "easy"}, "selected_model": "small"}
    steps, part, said = walked({"/startup-status": as_json(200, READY), "/metrics": (200, METRICS), "/api/v1/routing/preview": as_json(200, preview)})
    assert {name: step.ok for name, step in steps.items()} == {"startup": True, "deployment judge": True, "signals": True, "slow phases": True, "preview": True}
    assert steps["slow phases"].detail.en == "slowest stage (mean): signals 100.0 ms / 102.5 ms"
    assert steps["preview"].detail.en == "decision easy, model small"
    assert part["command"] == "vllm-sr serve"
    assert said == []


def test_a_router_that_is_not_ready() -> None:
    """503 has the same body; a reason is repeated in the words of the router's log, and nothing is previewed."""
    steps, _, said = walked({"/startup-status": as_json(503, LOADING), "/metrics": (200, "")})
    assert {name: step.ok for name, step in steps.items()} == {
        "startup": False, "deployment judge": False, "deployment other": False, "signals": None, "slow phases": None,
    }  # fmt: skip
    assert said[0] == "model runtime is not ready: model judge failed to load: ArtifactError: a file hash does not match"
    assert "other (org/o) loading" in said[1]


def test_signals_without_an_answer() -> None:
    unknown = METRICS + 'vsr_model_runtime_unknown_answers_total{deployment="judge",reason="timeout"} 7\n'
    preview = {"signal_errors": {"urgent": "decision_timeout"}, "selected_model": "small"}
    steps, _, said = walked({"/startup-status": as_json(200, READY), "/metrics": (200, unknown), "/api/v1/routing/preview": as_json(200, preview)})
    assert steps["signals"].ok is False
    assert "judge" in steps["signals"].detail.en
    assert "7" in steps["signals"].detail.zh
    assert steps["preview"].ok is False
    assert json.loads(said[0])["reason"] == "timeout"


@pytest.mark.parametrize("answer", [(200, "no json"), (404, "{}"), (200, "[]"), (401, '{"error": "token"}')])
def test_a_management_address_of_somebody_else(answer: Answer) -> None:
    steps, part, _ = walked({"/startup-status": answer, "/metrics": (200, METRICS)})
    assert steps["startup"].ok is False
    assert "command" not in part
    assert "preview" not in steps


def test_nobody_there() -> None:
    nobody = "http://127.0.0.1:1"
    with client_for(None, timeout=2.0) as client:
        steps, part = walk(client, RouterPlace(nobody, nobody, nobody), "hello", said := Transcript())
    assert [step.ok for step in steps] == [False, None]
    assert part == {}
    assert len(said.lines) == 2


def test_places() -> None:
    assert place_of("10.0.0.2", None, None) == RouterPlace("http://10.0.0.2:8899", "http://10.0.0.2:8080", "http://10.0.0.2:9190")
    assert place_of("http://h:9000/v1", None, "m:1") == RouterPlace("http://h:9000", "http://h:8181", "http://m:1"), "moved as far as the listener"
    assert place_of("http://[::1]:80", None, None).management == "http://[::1]:8080"


def test_averages() -> None:
    assert averages({"a_sum{x=1}": 3.0, "a_count{x=1}": 2.0, "b_sum": 1.0, "b_count": 0.0}) == {"a_avg{x=1}": 1.5}
