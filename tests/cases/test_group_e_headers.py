"""E11: what an outside client claims in headers is neither believed, nor passed on, nor given back."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cases.router_case import any_of, decision, document, raw_answer
from tests.e2e.router_process import RunningRouter, backend, started_router
from tests.router.upstream.scripted_backend import ScriptedBackend, answers

CLAIMS = {
    "x-vsr-skip-processing": "true",
    "x-vsr-internal": "1",
    "x-vsr-looper-request": "true",
    "x-vsr-selected-model": "expensive",
    "x-selected-model": "expensive",
    "x-authz-user-id": "admin",
    "x-authz-user-groups": "root",
    "x-authz-team-id": "t",
    "x-authz-tenant-id": "t",
    "x-vsr-debug": "true",
    "x-vsr-trace": "1",
    "x-forwarded-for": "127.0.0.1",
    "x-forwarded-host": "evil.example.test",
    "x-real-ip": "127.0.0.1",
    "forwarded": "for=127.0.0.1",
    "x-gateway-destination-endpoint": "evil.example.test:80",
    "x-envoy-original-path": "/admin",
    "x-vsr-destination-endpoint": "evil.example.test:80",
    "cookie": "a=b",
}


@pytest.fixture(scope="module")
def expensive() -> Iterator[ScriptedBackend]:
    with backend(answers()) as found:
        yield found


@pytest.fixture(scope="module")
def router(expensive: ScriptedBackend, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    """Its trusted proxies and debuggers are elsewhere, so that the test is an outsider. A blocked word, a route for staff, and a model for the rest."""
    signals = {
        "keywords": [{"name": "bad", "operator": "OR", "keywords": ["bomb"]}],
        "role_bindings": [{"name": "staff", "role": "staff", "subjects": [{"kind": "User", "name": "admin"}, {"kind": "Group", "name": "root"}]}],
    }
    block = [{"type": "fast_response", "configuration": {"message": "no"}}]
    decisions = [
        decision("block", any_of({"type": "keyword", "name": "bad"}), priority=20, plugins=block),
        decision("staff", any_of({"type": "authz", "name": "staff"}), model="expensive", priority=10),
    ]
    settings = {"router": {"skip_processing": {"enabled": True}, "headers": {"debug": {"peers": ["10.0.0.0/8"]}}}}
    whole = document({"m": expensive.endpoint, "expensive": expensive.endpoint}, {"signals": signals, "decisions": decisions}, **{"global": settings})
    whole["listeners"][0]["identity"] = {"trust_headers": True, "trusted_peers": ["10.0.0.0/8"]}
    with started_router(tmp_path_factory.mktemp("headers"), whole) as found:
        yield found


def mixed(name: str) -> str:
    return "".join(letter.upper() if at % 2 else letter for at, letter in enumerate(name))


def post(router: RunningRouter, text: str, lines: bytes) -> tuple[int, bytes, Any]:
    """Status, head and body of the answer to a request with exactly these header lines."""
    body = json.dumps({"model": "vllm-sr/auto", "messages": [{"role": "user", "content": text}]}).encode()
    head = b"POST /v1/chat/completions HTTP/1.1\r\nhost: router\r\ncontent-type: application/json\r\n" + lines
    port = int(router.url.rsplit(":", 1)[1])
    raw = raw_answer(port, head, body)
    top, _, rest = raw.partition(b"\r\n\r\n")
    return int(top.split(b" ")[1]), top.lower(), json.loads(rest) if rest.startswith(b"{") else rest


@pytest.mark.parametrize("style", ["lower", "mixed", "doubled"])
def test_e11_claims_change_nothing_and_go_nowhere(router: RunningRouter, expensive: ScriptedBackend, style: str) -> None:
    pairs = [(mixed(name) if style == "mixed" else name, value) for name, value in CLAIMS.items()]
    lines = "".join(f"{name}: {value}\r\n" for name, value in pairs).encode() * (2 if style == "doubled" else 1)
    status, head, body = post(router, "a bomb", lines)
    assert (status, body["choices"][0]["message"]["content"]) == (200, "no")  # all checks ran
    before = len(expensive.asked)
    status, head, body = post(router, "hello", lines)
    assert status == 200
    assert b"x-vsr-selected-model: m" in head
    assert b"x-vsr-selected-decision" not in head
    assert b"x-vsr-trace" not in head
    assert b"x-vsr-matched" not in head
    assert b"evil" not in head
    (asked,) = expensive.asked[before:]
    assert asked.path == "/v1/chat/completions"
    assert asked.headers["host"] == expensive.endpoint
    assert not set(CLAIMS) & set(asked.headers)


READ = ["x-request-id", "x-session-id", "x-conversation-id", "x-vsr-cache-control", "x-request-timeout-ms", "traceparent", *CLAIMS]


@pytest.mark.parametrize("name", READ)
def test_e11_a_value_of_64_kb_is_refused_or_dropped_and_harms_nobody(router: RunningRouter, expensive: ScriptedBackend, name: str) -> None:
    before = len(expensive.asked)
    status, head, _ = post(router, "hello", f"{name}: {'a' * 65_536}\r\n".encode())
    assert status in (200, 400, 431)
    assert b"a" * 2000 not in head
    assert all(len(value) < 2000 for asked in expensive.asked[before:] for value in asked.headers.values())
    assert router.chat("hello").status_code == 200


@pytest.mark.parametrize("value", [b"a\r\nx-evil: 1", b"a\nx-evil: 1", b"a\rx-evil: 1", b"a\x00b"])
@pytest.mark.parametrize("name", [b"x-request-id", b"x-session-id", b"x-vsr-debug"])
def test_e11_line_ends_split_no_answer(router: RunningRouter, expensive: ScriptedBackend, name: bytes, value: bytes) -> None:
    before = len(expensive.asked)
    status, head, _ = post(router, "hello", name + b": " + value + b"\r\n")
    assert status in (200, 400)
    assert b"x-evil" not in head
    assert all("x-evil" not in asked.headers for asked in expensive.asked[before:])


def test_e11_what_was_claimed_is_not_in_the_log(router: RunningRouter) -> None:
    post(router, "secret words", "".join(f"{name}: claim-{name}\r\n" for name in CLAIMS).encode())
    log = router.log.read_text()
    assert "claim-" not in log
    assert "secret words" not in log
