"""System One on a public listener: grants, names, limits, failures."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from tests.router.deployments.fake_runtime import answer_questions, fake_runtime, never, noul_card
from tests.router.deployments.setups import attached, until
from tests.router.listener.live_front import LiveFront, run

QUESTIONS = {"urgent": {"type": "noul", "instructions": "Is it urgent?"}}
BODY = {"state": "text", "questions": QUESTIONS}


def front(tmp_path: Path, endpoint: str, grant: dict[str, Any] | None = None, deployment: dict[str, Any] | None = None, **listener: Any) -> LiveFront:
    systemone = {"models": ["acme/judge"], **(grant or {})}
    listeners = [{"name": "public", "port": 1, "systemone": systemone, **listener}]
    deployments = {"judge": attached(endpoint, public_name="acme/judge", **(deployment or {}))}
    return LiveFront(None, tmp_path, listeners=listeners, **{"global": {"model_catalog": {"deployments": deployments}}})


async def ready(live: LiveFront) -> LiveFront:
    await until(lambda: live.generations.current.deployments.card("judge"))
    return live


@pytest.mark.parametrize("path", ["/v1/systemone", "/v1/decisions"])
def test_a_body_is_passed_on_as_it_came_but_for_the_name(tmp_path: Path, path: str) -> None:
    raw = b'{ "state": "\xc3\xa9\\u00e9", "model" : "acme/judge", "questions": ' + json.dumps(QUESTIONS).encode() + b', "x_own": 1.0 }'

    async def work() -> None:
        async with fake_runtime(noul_card("judge")) as runtime, front(tmp_path, runtime.endpoint) as live:
            runtime.script["/v1/systemone"] = answer_questions
            await ready(live)
            answer = await live.http.post(path, content=raw, headers={"x-request-id": "r1", "content-type": "application/json"})
            assert answer.status_code == 200
            assert answer.json()["answers"]["urgent"]["noul"] == 0.75
            assert answer.json()["model"] == "acme/judge"
            assert answer.headers["x-request-id"] == answer.headers["x-typesafe-request-id"] == "r1"
            assert "forward" in answer.headers["server-timing"]
            [(asked, body)] = runtime.posts
            assert asked == path
            assert body == {"state": "éé", "model": "judge", "questions": QUESTIONS, "x_own": 1.0}
            assert "authorization" not in runtime.headers[0]

    run(work)


def test_grants_say_who_may_ask_whom(tmp_path: Path) -> None:
    async def work() -> None:
        keys = [{"name": "a", "key": "ka"}, {"name": "b", "key": "kb", "models": ["other"]}]
        async with fake_runtime(noul_card("judge")) as runtime, front(tmp_path, runtime.endpoint, keys=keys) as live:
            runtime.script["/v1/systemone"] = answer_questions
            await ready(live)

            async def post(model: str | None, key: str) -> Any:
                body = BODY if model is None else {**BODY, "model": model}
                return await live.http.post("/v1/systemone", json=body, headers={"authorization": f"Bearer {key}"})

            assert (await post("acme/judge", "ka")).status_code == 200
            assert (await post(None, "ka")).status_code == 200  # the only one
            assert (await post("jev-latest", "ka")).json()["model"] == "acme/judge"  # what clients send by default
            assert (await post("jev-latest", "kb")).status_code == 404
            unknown = await post("judge", "ka")  # the deployment's own name is private
            assert (unknown.status_code, unknown.json()["error"]["reason"]) == (404, "model_not_found")
            assert unknown.json()["detail"]["error_type"] == "api_usage_error"
            for wrong_model in (3, {}, []):
                assert (await post(wrong_model, "ka")).status_code == 400  # type: ignore[arg-type]
            assert (await post("acme/judge", "kb")).status_code == 404
            wrong = await post("acme/judge", "kc")
            assert (wrong.status_code, wrong.json()["detail"]["error_type"]) == (401, "authentication_error")
            listed = await live.http.get("/v1/systemone/models", headers={"api-key": "ka"})
            assert [entry["name"] for entry in listed.json()["models"]] == ["acme/judge"]
            assert listed.json()["data"][0] | {"created": 0} == {
                "id": "acme/judge", "object": "model", "created": 0, "owned_by": "vllm-semantic-router", "ready": True, "surfaces": ["decisions"],
                "question_types": ["choice", "noul", "score", "set"],
            }  # fmt: skip
            assert (await live.http.get("/v1/systemone/models", headers={"api-key": "kb"})).json()["models"] == []
            assert (await live.http.get("/v1/systemone/models")).status_code == 401

    run(work)


def test_without_a_grant_nothing_is_offered(tmp_path: Path) -> None:
    async def work() -> None:
        async with LiveFront(None, tmp_path) as live:
            answer = await live.http.post("/v1/systemone", json={**BODY, "model": "acme/judge"})
            assert answer.status_code == 404
            assert (await live.http.get("/v1/systemone/models")).json()["models"] == []
            assert (await live.http.get("/v1/systemone")).status_code == 405

    run(work)


def test_what_the_worker_refuses_reaches_the_client_as_it_is(tmp_path: Path) -> None:
    told = {"detail": [{"type": "missing", "loc": ["body", "state"], "msg": "state is missing"}]}

    async def refusing(_: Any) -> Any:
        return 422, told

    async def work() -> None:
        async with fake_runtime(noul_card("judge")) as runtime, front(tmp_path, runtime.endpoint) as live:
            runtime.script["/v1/systemone"] = refusing
            await ready(live)
            answer = await live.http.post("/v1/systemone", json={"questions": {}})
            assert (answer.status_code, answer.json()) == (422, told)

    run(work)


@pytest.mark.parametrize(
    ("status", "expected"), [(429, (429, None)), (503, (503, "runtime_unavailable")), (500, (500, None))]
)
def test_failures_of_the_worker(tmp_path: Path, status: int, expected: Any) -> None:
    async def failing(_: Any) -> Any:
        return status, {"error": {"code": "x", "message": "m"}}

    async def work() -> None:
        async with fake_runtime(noul_card("judge")) as runtime, front(tmp_path, runtime.endpoint) as live:
            runtime.script["/v1/systemone"] = failing
            await ready(live)
            answer = await live.http.post("/v1/systemone", json=BODY)
            assert (answer.status_code, answer.json()["error"].get("reason")) == expected

    run(work)


@pytest.mark.parametrize("how", ["body", "header", "grant", "listener"])
def test_deadlines(tmp_path: Path, how: str) -> None:
    async def work() -> None:
        grant = {"max_deadline_ms": 50} if how == "grant" else {}
        listener = {"timeout": "50ms"} if how == "listener" else {}
        async with fake_runtime(noul_card("judge")) as runtime, front(tmp_path, runtime.endpoint, grant, **listener) as live:
            runtime.script["/v1/systemone"] = never
            await ready(live)
            options = {"options": {"deadline_ms": 50}} if how == "body" else {"options": {"deadline_ms": 60_000}}
            headers = {"x-request-timeout-ms": "50"} if how == "header" else {}
            answer = await live.http.post("/v1/systemone", json={**BODY, **options}, headers=headers)
            assert (answer.status_code, answer.json()["error"]["reason"]) == (504, "deadline_exceeded")
            [pool] = live.generations.current.deployments.pools  # type: ignore[attr-defined]
            await until(lambda: pool.workers[0].in_flight == 0)
            assert pool.ready

    run(work)


def test_answers_beyond_four_mebibytes_are_not_read(tmp_path: Path) -> None:
    async def endless(_: Any) -> Any:
        return b'"' + b"x" * (4 << 20) + b'"'

    async def work() -> None:
        async with fake_runtime(noul_card("judge")) as runtime, front(tmp_path, runtime.endpoint) as live:
            runtime.script["/v1/systemone"] = endless
            await ready(live)
            answer = await live.http.post("/v1/systemone", json=BODY)
            assert (answer.status_code, answer.json()["error"]["reason"]) == (502, "runtime_failed")

    run(work)


def test_bodies_beyond_48_mebibytes_are_refused_before_they_come(tmp_path: Path) -> None:
    async def work() -> None:
        async with fake_runtime(noul_card("judge")) as runtime, front(tmp_path, runtime.endpoint) as live:
            reader, writer = await asyncio.open_connection("127.0.0.1", live.port)
            head = f"POST /v1/systemone HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: {(48 << 20) + 1}\r\n\r\n"
            writer.write(head.encode())
            assert (await reader.readline()).split()[1] == b"413"
            writer.close()

    run(work)


def test_a_client_that_leaves_takes_its_call_along(tmp_path: Path) -> None:
    async def work() -> None:
        async with fake_runtime(noul_card("judge")) as runtime, front(tmp_path, runtime.endpoint) as live:
            runtime.script["/v1/systemone"] = never
            await ready(live)
            job = asyncio.create_task(live.http.post("/v1/systemone", json=BODY))
            await until(lambda: runtime.posts)
            job.cancel()
            [pool] = live.generations.current.deployments.pools  # type: ignore[attr-defined]
            await until(lambda: pool.workers[0].in_flight == 0)
            assert live.counted("vsr_model_runtime_requests", "judge", "cancelled") == 1

    run(work)


@pytest.mark.parametrize(("path", "status"), [("/v1/systemone", 422), ("/v1/decisions", 400)])
def test_a_body_that_cannot_be_read_is_told_in_both_forms(tmp_path: Path, path: str, status: int) -> None:
    async def work() -> None:
        async with fake_runtime(noul_card("judge")) as runtime, front(tmp_path, runtime.endpoint) as live:
            answer = await live.http.post(path, content=b"{", headers={"content-type": "application/json"})
            assert (answer.status_code, answer.json()["error"]["code"], answer.json()["error"]["reason"]) == (status, status, "body_invalid")
            assert answer.json()["detail"][0]["loc"] == ["body"]
            assert runtime.posts == []

    run(work)
