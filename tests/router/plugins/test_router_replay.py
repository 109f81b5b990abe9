"""router_replay: what a record says, and what it must not say."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headway.errors import HeadwayError
from headway.router.plugins.completion import completion
from headway.router.stores.replays.store import Filters
from tests.router.plugins.response_cache.backends import cache
from tests.router.plugins.rig import EMBEDDING, Rig, chat, run
from tests.router.scripted_calls import ScriptedCalls

SECRET = "mail bo@x.org, call +49 170 1234567, key sk-abcdef123456, card 4111 1111 1111 1111"


def recorded(tmp_path: Path, body: Any, *more: Any, settings: Any = EMBEDDING, answers: Any = None, models: Any = None, **configuration: Any) -> list[dict[str, Any]]:
    async def work() -> list[dict[str, Any]]:
        plugins = [("router_replay", configuration)] if configuration else []
        rig = Rig(tmp_path, *plugins, *more, settings=settings, answers=answers, models=models)
        try:
            told = await rig.ask(body)
            assert told.context.response_headers.get("x-vsr-replay-id") == told.context.replay_id
        except HeadwayError:
            pass
        store = rig.services.replays.current
        found = store.find(Filters(), 9, 0)[0] if store else []
        await rig.services.close()
        return list(found)

    return run(work)


@pytest.mark.parametrize("streams", [False, True])
def test_a_record_tells_how_a_request_was_routed(tmp_path: Path, streams: bool) -> None:
    body = completion("hi", "m")
    body["usage"] = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    (record,) = recorded(tmp_path, chat("q", stream=streams), enabled=True, answers=lambda context: body)
    assert (record["decision"], record["selected_model"], record["status"], record["response_path"]) == ("d", "m", 200, "upstream")
    assert record["usage"]["total_tokens"] == 3
    assert "request_body" not in record
    assert "user" not in record
    assert record.get("stream_complete", True) is True


def test_bodies_are_bounded_and_redacted(tmp_path: Path) -> None:
    (record,) = recorded(tmp_path, SECRET, enabled=True, capture_request_body=True, capture_response_body=True, answers=lambda context: completion(SECRET, "m"))
    for name in ("request_body", "response_body"):
        for secret in ("bo@x.org", "1234567", "sk-abcdef", "4111"):
            assert secret not in record[name]
        assert json.loads(record[name])
    (record,) = recorded(tmp_path / "p", SECRET, enabled=True, capture_request_body=True, capture_personal_data=True)
    assert "bo@x.org" in record["request_body"]
    assert "sk-abcdef" not in record["request_body"]
    assert record["user"] == "alice"
    (record,) = recorded(tmp_path / "c", "é" * 900, enabled=True, capture_request_body=True, max_body_bytes=100)
    assert record["request_body_truncated"]
    assert len(record["request_body"].encode()) in (99, 100)


def test_tool_traces_are_bounded(tmp_path: Path) -> None:
    call = {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}]}
    body = chat("q")
    body["messages"] = [call, {"role": "tool", "tool_call_id": "1", "content": "r"}] * 5 + body["messages"]
    (record,) = recorded(tmp_path, body, enabled=True, capture_request_body=True, max_tool_trace_steps=3)
    assert [step["kind"] for step in record["tool_trace"]] == ["call", "result", "call", "cut"]


def test_a_route_that_masks_records_nothing_of_requests(tmp_path: Path) -> None:
    models = ScriptedCalls(decisions=lambda question, state: {"type": "span", "spans": []})
    (record,) = recorded(tmp_path, "secret", ("masking", {"enabled": True}), models=models, enabled=True, capture_request_body=True)
    assert "request_body" not in record
    assert "tool_trace" not in record


def test_failures_are_recorded(tmp_path: Path) -> None:
    def fails(context: Any) -> Any:
        raise HeadwayError("gone", reason="no_upstream")

    (record,) = recorded(tmp_path, "q", enabled=True, answers=fails)
    assert (record["status"], record["error"], record["response_path"]) == (503, "no_upstream", "error")


def test_the_service_for_all_and_the_decision(tmp_path: Path) -> None:
    on = {**EMBEDDING, "services": {"router_replay": {"enabled": True, "store_backend": "memory"}}}
    assert len(recorded(tmp_path, "q", settings=on)) == 1
    assert recorded(tmp_path, "q", settings=on, enabled=False) == []
    assert recorded(tmp_path, "q") == []


def test_hits_of_the_cache_are_recorded(tmp_path: Path) -> None:
    async def work() -> None:
        rig = Rig(tmp_path, ("router_replay", {"enabled": True}), cache(mode="exact"))
        for _ in range(2):
            await rig.ask("q")
        store = rig.services.replays.current
        assert store is not None
        assert store.aggregate(Filters())["cache_statuses"] == {"miss": 1, "hit": 1}
        assert store.find(Filters(cache="hit"), 9, 0)[0][0]["response_path"] == "cache"
        await rig.services.close()

    run(work)
