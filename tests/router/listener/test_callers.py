"""Keys, budgets, limits and headers: what a caller may say and ask for, tried from outside."""

from __future__ import annotations

import asyncio
import gzip
import json
from pathlib import Path
from typing import Any

import httpx
import pytest
import zstandard

from headway.errors import ConfigError
from headway.router.config.document.document import Document
from headway.router.listener.front import compile_front
from headway.router.listener.refused_skips import RefusedSkips
from tests.router.listener.live_front import AUTO, HELLO, LiveFront, decision, run
from tests.router.upstream.scripted_backend import WHOLE, ScriptedBackend, answers

JSON = {"content-type": "application/json"}
PRICED: dict[str, Any] = {"pricing": {"prompt_per_1m": 1000.0, "completion_per_1m": 2000.0}}
BLOCKING = {
    "signals": {"keywords": [{"name": "bad", "operator": "OR", "keywords": ["hi"]}]},
    "decisions": [decision("block", {"operator": "AND", "conditions": [{"type": "keyword", "name": "bad"}]}, [{"type": "fast_response", "configuration": {"message": "no"}}])],
}  # fmt: skip


def listener(**fields: Any) -> dict[str, Any]:
    return {"listeners": [{"name": "public", "port": 1, **fields}]}


@pytest.mark.parametrize("headers", [{"authorization": "Bearer k1"}, {"authorization": "bearer  k2"}, {"api-key": "k1"}, {"x-api-key": "k2"}])
def test_any_key_opens_in_any_of_three_headers_and_none_reaches_the_backend(tmp_path: Path, headers: dict[str, str]) -> None:
    async def work() -> None:
        async with ScriptedBackend([answers()]) as backend, LiveFront(backend, tmp_path, **listener(api_keys=["k1", "k2"])) as front:
            assert (await front.chat(headers)).status_code == 200
            assert not {"authorization", "api-key", "x-api-key"} & set(backend.asked[0].headers)

    run(work)


@pytest.mark.parametrize("headers", [{}, {"authorization": "Bearer k3"}, {"authorization": "Basic k1"}, {"api-key": ""}, {"authorization": "k1"}])
def test_without_a_key_nothing_but_health_answers(tmp_path: Path, headers: dict[str, str]) -> None:
    async def work() -> None:
        async with ScriptedBackend([answers()]) as backend, LiveFront(backend, tmp_path, **listener(api_keys=["k1"])) as front:
            for path in ("/v1/chat/completions", "/v1/messages", "/v1/responses", "/nothing"):
                answer = await front.http.post(path, json={"model": "m", "messages": HELLO}, headers=headers)
                assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
            assert (await front.http.get("/v1/models", headers=headers)).status_code == 401
            assert front.counted("llm_request_errors", "", "unauthorized") == 5
            assert (await front.http.get("/health")).status_code == 200
            assert backend.asked == []

    run(work)


def test_a_key_opens_its_own_models_and_lists_only_those(tmp_path: Path) -> None:
    keys = [{"name": "alice", "key_env": "ALICE", "models": ["m"]}, {"name": "bob", "key": "kb"}]

    async def work() -> None:
        options: Any = {**listener(keys=keys), "routing": {"decisions": [decision("all")]}}
        async with ScriptedBackend([answers()]) as backend, LiveFront(backend, tmp_path, {"ALICE": "ka"}, **options) as front:
            alice, bob = {"authorization": "Bearer ka"}, {"authorization": "Bearer kb"}
            assert (await front.chat(alice)).status_code == 200
            refused = await front.chat(alice, model=AUTO)
            assert (refused.status_code, refused.json()["error"]["reason"]) == (403, "model_not_allowed")
            assert (await front.chat(bob, model=AUTO)).status_code == 200
            assert (await front.http.get("/v1/models", headers=alice)).json()["data"] == []
            assert AUTO in [entry["id"] for entry in (await front.http.get("/v1/models", headers=bob)).json()["data"]]

    run(work)


def test_a_listener_opens_its_models_alone(tmp_path: Path) -> None:
    async def work() -> None:
        async with ScriptedBackend([answers()]) as backend, LiveFront(backend, tmp_path, **listener(models=[AUTO])) as front:
            assert (await front.chat(model="m")).status_code == 403
            assert (await front.chat(model="unknown")).status_code == 403

    run(work)


def test_a_key_that_spent_its_budget_is_refused_until_the_period_ends(tmp_path: Path) -> None:
    keys = [{"name": "alice", "key": "ka", "budget": {"amount": 0.015, "per": "day"}}, {"name": "bob", "key": "kb"}]

    async def work() -> None:
        async with ScriptedBackend([answers()]) as backend, LiveFront(backend, tmp_path, model=PRICED, **listener(keys=keys)) as front:
            alice = {"authorization": "Bearer ka"}
            assert [(await front.chat(alice)).status_code for _ in range(2)] == [200, 200]  # 0.011 each: the second goes over it
            refused = await front.chat(alice)
            assert (refused.status_code, refused.json()["error"]["reason"]) == (429, "budget_exceeded")
            assert 0 < int(refused.headers["retry-after"]) <= 86400
            assert refused.headers["x-vsr-response-path"] == "rate_limited"
            assert (await front.chat({"authorization": "Bearer kb"})).status_code == 200
            assert len(backend.asked) == 3
            assert front.counted("headway_key_spend", "alice", "USD") == pytest.approx(0.022)
            assert front.counted("headway_key_tokens", "bob") == 7

    run(work)


def test_limits_of_requests_and_tokens(tmp_path: Path) -> None:
    rules = [
        {"name": "few", "match": {"user": "alice"}, "requests_per_unit": 2, "unit": "hour"},
        {"name": "tokens", "match": {"user": "bob"}, "tokens_per_unit": 10, "unit": "hour"},
    ]
    limits = {"global": {"services": {"ratelimit": {"providers": [{"rules": rules}]}}}}
    keys = [{"name": name, "key": name} for name in ("alice", "bob", "carol")]

    async def work() -> None:
        async with ScriptedBackend([answers()]) as backend, LiveFront(backend, tmp_path, **limits, **listener(keys=keys)) as front:
            front.services.rate_windows.clock = lambda: 7200.0
            alice = [await front.chat({"api-key": "alice"}) for _ in range(3)]
            assert [answer.status_code for answer in alice] == [200, 200, 429]
            assert [answer.headers["x-ratelimit-remaining"] for answer in alice] == ["1", "0", "0"]
            assert alice[2].json()["error"] | {"message": ""} == {
                "message": "", "type": "rate_limit_error", "param": None, "code": 429, "reason": "rate_limited",
            }  # fmt: skip
            assert (alice[2].headers["retry-after"], alice[2].headers["x-ratelimit-limit"]) == ("3600", "2")
            assert [(await front.chat({"api-key": "bob"})).status_code for _ in range(3)] == [200, 200, 429]  # 7 tokens each
            assert [(await front.chat({"api-key": "carol"})).status_code for _ in range(4)] == [200] * 4
            front.services.rate_windows.clock = lambda: 10800.0
            assert (await front.chat({"api-key": "alice"})).status_code == 200

    run(work)


SPOOFED = {
    "x-vsr-skip-processing": "true", "X-Authz-User-Id": "admin", "x-authz-user-groups": "root", "x-authz-team-id": "t", "x-authz-tenant-id": "t",
    "x-forwarded-for": "127.0.0.1", "x-real-ip": "127.0.0.1", "forwarded": "for=127.0.0.1", "x-vsr-selected-model": "big", "x-vsr-internal": "1",
    "x-gateway-destination-endpoint": "10.0.0.1:80", "cookie": "a=b", "x-envoy-original-path": "/admin",
}  # fmt: skip


def test_nothing_that_an_outsider_claims_is_believed_or_passed_on(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    options: dict[str, Any] = {
        "routing": BLOCKING,
        "global": {"router": {"skip_processing": {"enabled": True}, "headers": {"debug": {"peers": ["10.0.0.0/8"]}}}},
        **listener(identity={"trust_headers": True, "trusted_peers": ["10.0.0.0/8"]}),
    }

    async def work() -> None:
        async with ScriptedBackend([answers()]) as backend, LiveFront(backend, tmp_path, **options) as front:
            answer = await front.chat({**SPOOFED, "x-vsr-debug": "true"}, model=AUTO)
            assert answer.json()["choices"][0]["message"]["content"] == "no"  # all checks ran
            assert "x-vsr-trace" not in answer.headers
            assert (await front.chat(SPOOFED)).status_code == 200
            assert not {name.lower() for name in SPOOFED} & set(backend.asked[0].headers)
            assert backend.asked[0].headers["host"] == f"127.0.0.1:{backend.port}"

    run(work)
    told = [record.getMessage() for record in caplog.records if "skip-processing" in record.getMessage()]
    assert len(told) == 1  # of two requests
    assert "x-vsr-skip-processing from 127.0.0.1 is ignored" in told[0]


def test_refused_skips_cannot_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    refused = RefusedSkips()
    for _ in range(3):
        for number in range(400):
            refused.note(f"10.0.{number // 256}.{number % 256}")
    assert len(caplog.records) == 257
    assert caplog.records[-1].getMessage().endswith("further ones are not told")


def test_a_trusted_peer_speaks_for_others_and_may_skip_processing(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    options: dict[str, Any] = {
        "routing": BLOCKING,
        "global": {"router": {"skip_processing": {"enabled": True}}},
        **listener(identity={"trust_headers": True, "trusted_peers": ["127.0.0.1"]}),
    }

    async def work() -> None:
        async with ScriptedBackend([answers()]) as backend, LiveFront(backend, tmp_path, **options) as front:
            assert (await front.chat(model=AUTO)).headers["x-vsr-response-path"] == "fast_response"
            caplog.clear()
            skipped = await front.chat({"X-VSR-Skip-Processing": "true"}, model=AUTO)
            assert skipped.headers["x-vsr-response-path"] == "upstream"
            assert "skip-processing" not in caplog.text
            twice = httpx.Headers([("x-authz-user-id", "alice"), ("X-Authz-User-Id", "admin")])
            refused = await front.http.post("/v1/chat/completions", json={"model": "m", "messages": HELLO}, headers=twice)
            assert (refused.status_code, refused.json()["error"]["param"]) == (400, "x-authz-user-id")

    run(work)


@pytest.mark.parametrize(
    "name", ["x-session-id", "x-request-timeout-ms", "x-vsr-debug", "x-vsr-cache-control", "x-request-id", "authorization", "traceparent"]
)
def test_a_header_of_64_kilobytes_is_refused_and_harms_nobody(tmp_path: Path, name: str) -> None:
    async def work() -> None:
        async with ScriptedBackend([answers()]) as backend, LiveFront(backend, tmp_path) as front:
            refused = await front.chat({name: "9" * 65536})
            assert (refused.status_code, refused.json()["error"]["reason"]) == (400, "header_invalid")
            assert (await front.chat()).status_code == 200

    run(work)


def test_line_ends_neither_come_in_nor_go_out(tmp_path: Path) -> None:
    """A header cannot be split: not by the client, and not by a backend or plugin whose header holds a line end."""
    routing = {"decisions": [decision("a b\r\nx-evil: 1\u00e9", plugins=[{"type": "fast_response", "configuration": {"message": "x"}}])]}

    async def work() -> None:
        async with ScriptedBackend([answers()]) as backend, LiveFront(backend, tmp_path, routing=routing) as front:
            reader, writer = await asyncio.open_connection("127.0.0.1", front.port)
            writer.write(b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nx-session-id: a\rb\r\ncontent-length: 2\r\n\r\n{}")
            assert (await reader.readline()).split()[1] == b"400"
            writer.close()
            answer = await front.chat(model=AUTO)
            assert "x-evil" not in answer.headers
            assert answer.headers["x-vsr-selected-decision"].startswith("a b x-evil: 1")

    run(work)


def test_debug_is_for_named_keys_and_networks(tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "global": {"router": {"headers": {"debug": {"peers": [], "keys": ["ops"]}}}},
        **listener(keys=[{"name": "ops", "key": "ko"}, {"name": "app", "key": "ka"}]),
    }

    async def work() -> None:
        async with ScriptedBackend([answers()]) as backend, LiveFront(backend, tmp_path, **options) as front:
            assert "x-vsr-trace" in (await front.chat({"api-key": "ko", "x-vsr-debug": "true"})).headers
            assert "x-vsr-trace" not in (await front.chat({"api-key": "ko"})).headers
            assert "x-vsr-trace" not in (await front.chat({"api-key": "ka", "x-vsr-debug": "true"})).headers

    run(work)


def test_bodies_may_come_compressed_and_not_too_large(tmp_path: Path) -> None:
    options = {"global": {"router": {"streamed_body": {"enabled": True, "max_bytes": 2000}}}}
    raw = json.dumps({"model": "m", "messages": HELLO}).encode()
    bomb = json.dumps({"model": "m", "messages": HELLO, "x": "a" * 100_000}).encode()

    async def work() -> None:
        async with ScriptedBackend([answers()]) as backend, LiveFront(backend, tmp_path, **options) as front:

            async def post(content: bytes, coding: str) -> int:
                return (await front.http.post("/v1/chat/completions", content=content, headers={**JSON, "content-encoding": coding})).status_code

            assert await post(gzip.compress(raw), "gzip") == 200
            assert await post(zstandard.compress(raw), "zstd") == 200
            assert await post(raw, "br") == 400
            assert await post(gzip.compress(bomb), "gzip") == 413
            assert await post(bomb, "identity") == 413
            assert len(backend.asked) == 2

    run(work)


def test_limits_that_are_switched_off_do_not_hold(tmp_path: Path) -> None:
    options = {"global": {"router": {"streamed_body": {"enabled": False, "max_bytes": 10}}}}

    async def work() -> None:
        async with ScriptedBackend([answers()]) as backend, LiveFront(backend, tmp_path, **options) as front:
            assert (await front.chat({})).status_code == 200

    run(work)


@pytest.mark.parametrize("headers", [{}, {"content-type": "text/plain"}, {"content-type": "application/x-www-form-urlencoded"}])
def test_what_a_web_page_may_send_unasked_is_refused(tmp_path: Path, headers: dict[str, str]) -> None:
    async def work() -> None:
        async with ScriptedBackend([answers()]) as backend, LiveFront(backend, tmp_path) as front:
            raw = json.dumps({"model": "m", "messages": HELLO}).encode()
            for path in ("/v1/chat/completions", "/v1/messages", "/v1/responses", "/v1/completions", "/v1/embeddings"):
                refused = await front.http.post(path, content=raw, headers=headers)
                assert (refused.status_code, "media_type_unsupported" in refused.text) == (400, True)
            preflight = await front.http.options("/v1/chat/completions", headers={"origin": "http://evil.test", "access-control-request-method": "POST"})
            assert (preflight.status_code, preflight.headers["allow"]) == (405, "POST")
            assert not any(name.startswith("access-control") for name in preflight.headers)
            assert backend.asked == []

    run(work)


def test_a_visible_deadline_ends_the_wait(tmp_path: Path) -> None:
    async def slow(asked: Any, writer: Any) -> None:
        await asyncio.sleep(10)

    async def work() -> None:
        async with ScriptedBackend([slow]) as backend, LiveFront(backend, tmp_path) as front:
            assert (await front.chat({"x-request-timeout-ms": "50"})).status_code == 504
            assert (await front.chat({"x-request-timeout-ms": "soon"})).status_code == 400

    run(work)


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"keys": [{"name": "a", "key_env": "NOT_SET"}]}, "key_missing"),
        ({"api_keys": ["k", "k"]}, "key_repeated"),
        ({"keys": [{"name": "a", "key": "1"}, {"name": "a", "key": "2"}]}, "key_repeated"),
    ],
)
def test_what_cannot_guard_a_listener_is_refused_when_the_configuration_loads(fields: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError) as caught:
        compile_front(Document.model_validate({"version": "v0.3", **listener(**fields)}), {})
    assert caught.value.reason == reason


def test_keys_are_kept_nowhere_in_what_is_compiled() -> None:
    front = compile_front(Document.model_validate({"version": "v0.3", **listener(api_keys=["very-secret"])}), {})
    assert "very-secret" not in repr(front) + repr(vars(front.rules("public").keys))


def test_the_whole_answer_is_what_the_backend_said(tmp_path: Path) -> None:
    async def work() -> None:
        async with ScriptedBackend([answers()]) as backend, LiveFront(backend, tmp_path) as front:
            assert (await front.chat()).json() == WHOLE

    run(work)
