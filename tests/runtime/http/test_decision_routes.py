"""Three wire forms on two routes: who speaks is seen from the body, and answers and errors have the form of the speaker."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.runtime.decisions.table_model import TableModel, TableReader
from tests.runtime.live_worker import LiveWorker, live_worker

NOUL = {"type": "noul", "instructions": "?", "criteria": {"true": "yes=1", "false": "no=0"}}
BOX = {"type": "box"}
OPENAI = {"input": "x", "questions": [{"type": "choice", "instructions": "?", "choices": [{"value": True}, {"value": "b=1"}]}]}
JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def worker() -> Iterator[LiveWorker]:
    with live_worker({"table": TableModel(TableReader()), "other": TableModel(TableReader())}) as worker:
        yield worker


@pytest.mark.parametrize("path", ["/v1/systemone", "/v1/decisions"])
@pytest.mark.parametrize("model", [{}, {"model": "table"}, {"model": "jev-latest"}, {"model": "jev-preview"}])
def test_system_one_is_answered_on_both_routes(worker: LiveWorker, path: str, model: dict[str, str]) -> None:
    body = worker.post(path, {**model, "state": "s", "questions": {"q": NOUL}, "x_nonce": 1}).json()
    assert body == {
        "model": "table", "answers": {"q": {"type": "noul", "noul": pytest.approx(1 / (1 + math.exp(-1))), "x_read": 1}},
        "usage": {"input_tokens": 1, "output_tokens": 0},
    }  # fmt: skip


def test_openai_is_answered_where_there_is_input(worker: LiveWorker) -> None:
    body = worker.post("/v1/decisions", OPENAI).json()
    assert body["answers"][0]["choice"] == "b=1"
    assert [each["value"] for each in body["answers"][0]["probabilities"]] == [True, "b=1"]
    assert body["usage"]["total_tokens"] == 1
    assert body.keys() == {"model", "answers", "usage"}


def test_a_batch_has_a_result_for_each_state(worker: LiveWorker) -> None:
    body = worker.post("/v1/systemone/batch", {"model": "other", "states": ["a", {"b": 1}], "questions": {"q": NOUL}}).json()
    assert [result["answers"]["q"]["x_read"] for result in body["results"]] == [1, len("{'b': 1}")]
    assert {result["model"] for result in body["results"]} == {body["model"]} == {"other"}
    assert body["total_usage"]["input_tokens"] == 9


def test_the_list_of_decision_models(worker: LiveWorker) -> None:
    listed = worker.client.get("/v1/systemone/models").json()["models"]
    assert [model["name"] for model in listed] == ["table", "other"]


@pytest.mark.parametrize(
    ("path", "body", "status", "kinds"),
    [
        ("/v1/systemone", {"questions": {"q": NOUL}}, 422, ["missing"]),
        ("/v1/decisions", {"questions": {"q": NOUL}}, 422, ["missing"]),
        ("/v1/systemone", {"state": "s", "questions": {"a": BOX, "b": {"type": "choice"}}}, 422, ["union_tag_invalid", "missing"]),
        ("/v1/systemone", {"state": "s", "questions": {"a": BOX}, "options": {}}, 400, ["union_tag_invalid"]),
        ("/v1/systemone", {"state": "s", "questions": {"a": NOUL}, "options": {"x": 1}}, 400, ["extra_forbidden"]),
        ("/v1/systemone/batch", {"states": ["s"] * 65, "questions": {"a": NOUL}}, 422, ["too_long"]),
    ],
)  # fmt: skip
def test_a_body_that_breaks_the_protocol(worker: LiveWorker, path: str, body: dict[str, Any], status: int, kinds: list[str]) -> None:
    answer = worker.post(path, body)
    assert answer.status_code == status
    found = answer.json()
    assert [entry["type"] for entry in found["detail"]] == kinds
    assert all(entry["loc"][0] == "body" and entry["msg"] for entry in found["detail"])
    assert found["error"]["code"] == "invalid_request"
    assert "server-timing" in answer.headers


@pytest.mark.parametrize("raw", [b"", b"{", b"[1]", b'{"state": "\\ud800"}', b'{"state": NaN}', b"\xff", b'{"a":' * 70 + b"1" + b"}" * 70])
def test_a_body_that_is_no_json(worker: LiveWorker, raw: bytes) -> None:
    system_one = worker.client.post("/v1/systemone", content=raw, headers=JSON)
    anybody = worker.client.post("/v1/decisions", content=raw, headers=JSON)
    assert (system_one.status_code, anybody.status_code) == (422, 400)
    assert [entry["type"] for entry in system_one.json()["detail"]] == ["json_invalid"]
    assert {"message", "type", "param", "code"} <= anybody.json()["error"].keys()
    assert anybody.json()["detail"][0]["loc"] == ["body"]


def test_errors_that_are_not_about_the_body(worker: LiveWorker) -> None:
    unknown = worker.post("/v1/systemone", {"model": "nothing", "state": "s", "questions": {"q": NOUL}})
    assert unknown.status_code == 404
    assert unknown.json()["detail"]["error_type"] == "api_usage_error"
    long = worker.post("/v1/systemone", {"state": "x" * 1001, "questions": {"q": NOUL}})
    assert (long.status_code, long.json()["detail"]["message"]) == (413, "too long")
    openai = worker.post("/v1/decisions", OPENAI | {"model": "nothing"}).json()
    assert openai["error"] | {"message": ""} == {"message": "", "type": "invalid_request_error", "param": "model", "code": "model_not_found"}
    wrong = worker.post("/v1/decisions", OPENAI | {"temperature": 1})
    assert (wrong.status_code, wrong.json()["error"]["param"]) == (400, "temperature")
    assert "detail" not in wrong.json()


def test_a_missing_key() -> None:
    with live_worker({"table": TableModel(TableReader())}, api_key=("secret",)) as worker:
        answer = worker.post("/v1/systemone", {"state": "s", "questions": {"q": NOUL}})
        assert answer.status_code == 401
        assert answer.json()["detail"]["error_type"] == "authentication_error"
        openai = worker.client.post("/v1/decisions", json=OPENAI, headers={"authorization": "Bearer secret"})
        assert openai.status_code == 200


def test_questions_are_counted_by_type_and_outcome(worker: LiveWorker) -> None:
    def counted(kind: str, outcome: str) -> float:
        return worker.metric(f'vllm_srun_questions_total{{outcome="{outcome}",type="{kind}"}}')

    before = {pair: counted(*pair) for pair in (("noul", "answered"), ("choice", "invalid_question"), ("set", "answered"), ("choice", "unavailable"))}
    questions = {
        "n": NOUL, "bad": {"type": "choice", "criteria": {}}, "set": {"type": "set", "instructions": "?", "criteria": {"a": None, "b": None}},
        "row": {"type": "choice", "instructions": "?", "criteria": {"a=fail": None, "b": None}},
    }  # fmt: skip
    worker.post("/v1/decisions", {"state": "s", "questions": questions})
    assert {pair: counted(*pair) - count for pair, count in before.items()} == dict.fromkeys(before, 1)


def test_two_rounds_go_through_the_server(worker: LiveWorker) -> None:
    with live_worker({"few": TableModel(TableReader(comfortable=16))}) as few:
        options = {f"{i}={i}": None for i in range(255)}
        found = few.post("/v1/systemone", {"state": "s", "questions": {"q": {"type": "choice", "criteria": options}}}).json()["answers"]["q"]
        assert (found["choice"], found["x_shortlist_rounds"], len(found["probabilities"])) == ("254=254", 2, 255)


def test_four_hundred_questions_and_states_in_one_body(worker: LiveWorker) -> None:
    questions = {str(i): NOUL for i in range(400)}
    body = worker.post("/v1/systemone", {"state": "s", "questions": questions}).json()
    assert list(body["answers"]) == list(questions)
    many = worker.post("/v1/decisions", {"states": {str(i): {"state": "s" * (i + 1), "questions": {"q": NOUL}} for i in range(64)}}).json()
    assert [part["answers"]["q"]["x_read"] for part in many["states"].values()] == list(range(1, 65))
    assert many["answers"] == {}


def test_multipart_is_refused(worker: LiveWorker) -> None:
    answer = httpx.post(f"{worker.url}/v1/systemone", files={"request": b"{}"}, trust_env=False)
    assert answer.status_code == 415
    assert isinstance(answer.json()["detail"]["message"], str)


@pytest.mark.parametrize("model", [{}, {"model": "jev-latest"}])
def test_a_task_of_a_bundle_names_models_as_the_route_does(worker: LiveWorker, model: dict[str, str]) -> None:
    task = {"id": "t", "decisions": {**model, "state": "s", "questions": {"q": NOUL}}}
    [result] = worker.post("/v1/bundle", {"tasks": [task]}).json()["results"]
    assert (result["status"], result["decisions"]["model"]) == (200, "table")


def test_the_operator_chooses_the_aliases() -> None:
    body = {"state": "s", "questions": {"q": NOUL}}
    with live_worker({"table": TableModel(TableReader())}, decision_alias=("judge",)) as worker:
        assert worker.post("/v1/systemone", body | {"model": "judge"}).json()["model"] == "table"
        assert worker.post("/v1/systemone", body | {"model": "jev-latest"}).status_code == 404
