"""Families that only a whole request fills, asked of a listener on a real port."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headway.router.listener.session_turns import LastModels
from tests.router.listener.live_front import AUTO, HELLO, LiveFront, decision, run
from tests.router.upstream.scripted_backend import ScriptedBackend, answers

ROUTING: dict[str, Any] = {
    "signals": {
        "keywords": [{"name": "hi", "operator": "OR", "keywords": ["hi"]}],
        "context": [{"name": "short", "max_tokens": "1K"}],
    },
    "decisions": [
        decision(
            "greeting",
            {"operator": "AND", "conditions": [{"type": "keyword", "name": "hi"}, {"type": "context", "name": "short"}]},
            [
                {
                    "type": "request_params",
                    "configuration": {"blocked_params": ["logprobs"], "max_tokens_limit": 50, "max_n": 1, "strip_unknown": True},
                }
            ],
        )
    ],
}
PRICED: dict[str, Any] = {"pricing": {"prompt_per_1m": 1000.0, "completion_per_1m": 2000.0}}


def sums(front: LiveFront, name: str) -> dict[str, float]:
    """The sums of a histogram, by its labels as text."""
    lines = front.services.metrics.text().decode().splitlines()
    found = [line.removeprefix(name + "_sum").rsplit(" ", 1) for line in lines if line.startswith(name + "_sum")]
    return {labels: float(value) for labels, value in found}


def test_a_routed_request(tmp_path: Path) -> None:
    async def work() -> None:
        async with ScriptedBackend([answers()]) as backend, LiveFront(backend, tmp_path, routing=ROUTING, model=PRICED) as front:
            answer = await front.chat(model=AUTO, logprobs=True, n=3, max_tokens=500, odd_parameter=1, other_parameter=2)
            assert answer.status_code == 200, answer.text
            assert {**backend.asked[0].body, "messages": 0} == {"model": "m", "messages": 0, "n": 1, "max_tokens": 50}
            for kind in ("keyword", "context"):
                assert front.counted("llm_signal_extraction_latency_seconds", kind) == 1
            assert front.counted("llm_model_routing_modifications", AUTO, "m") == 1
            assert front.counted("sr_request_params_blocked", "greeting", "logprobs") == 1
            assert front.counted("sr_request_params_max_tokens_capped", "greeting") == 1
            assert front.counted("sr_request_params_max_n_capped", "greeting") == 1
            assert front.counted("sr_request_params_unknown_field_stripped", "greeting") == 2
            assert "odd_parameter" not in front.services.metrics.text().decode()  # names that clients make up are no labels
            assert sums(front, "llm_session_turn_prompt_tokens") == {'{domain="unknown",model="m"}': 3}
            assert sums(front, "llm_session_turn_completion_tokens") == {'{domain="unknown",model="m"}': 4}
            assert sums(front, "llm_session_turn_cost") == {'{currency="USD",domain="unknown",model="m"}': pytest.approx(0.011)}
            text = front.services.metrics.text().decode()  # "hi there" is 2 tokens by its bytes, the backend says 3: a third too few
            for bound, below in ((-50.0, 0), (-30.0, 1), (100.0, 1)):
                assert f'vsr_token_estimation_error_pct_bucket{{category="signal",le="{bound}"}} {below}.0' in text
            await front.chat(model="m")
            assert front.counted("llm_model_routing_modifications", "m", "m") == 0
            assert front.counted("sr_request_params_blocked", "greeting", "logprobs") == 1

    run(work)


def test_an_estimate_for_a_budget_is_judged_too(tmp_path: Path) -> None:
    keys = [{"name": "k", "key": "k", "budget": {"amount": 10}}]

    async def work() -> None:
        listeners = [{"name": "public", "port": 1, "keys": keys}]
        async with ScriptedBackend([answers()]) as backend, LiveFront(backend, tmp_path, listeners=listeners) as front:
            await front.chat({"api-key": "k"})
            assert front.counted("vsr_token_estimation_error_pct", "budget") == 1

    run(work)


def test_no_estimate_is_judged_by_another_prompt_than_it_was_made_of(tmp_path: Path) -> None:
    """A plugin put instructions before the conversation: the backend counts them, the estimate did not."""
    plugin = {"type": "system_prompt", "configuration": {"system_prompt": "Be brief.", "mode": "insert"}}
    routing = {**ROUTING, "decisions": [{**ROUTING["decisions"][0], "plugins": [plugin]}]}

    async def work() -> None:
        async with ScriptedBackend([answers()]) as backend, LiveFront(backend, tmp_path, routing=routing) as front:
            await front.chat(model=AUTO)
            assert len(backend.asked[0].body["messages"]) == 2
            assert front.counted("vsr_token_estimation_error_pct", "signal") == 0

    run(work)


def test_the_steps_of_the_response_cache(tmp_path: Path) -> None:
    plugin = {"type": "response_cache", "configuration": {"enabled": True, "mode": "exact", "scope": "global"}}

    async def work() -> None:
        async with ScriptedBackend([answers()]) as backend, LiveFront(backend, tmp_path, routing={"decisions": [decision("d", None, [plugin])]}) as front:
            for _ in range(2):
                await front.chat(model=AUTO)
            assert len(backend.asked) == 1
            for operation, status in (("lookup_exact", "miss"), ("store", "success"), ("lookup_exact", "hit")):
                assert front.counted("llm_cache_operations", "memory", operation, status) == 1
                assert front.counted("llm_response_cache_operation_duration_seconds", "memory", operation, status) == 1

    run(work)


def test_turns_of_a_session_that_change_the_model(tmp_path: Path) -> None:
    def models(backend: ScriptedBackend) -> dict[str, Any]:
        refs = [{"endpoint": backend.endpoint}]
        return {"models": [{"name": "m", "backend_refs": refs}, {"name": "n", "backend_refs": refs}], "defaults": {"model": "m"}}

    async def work() -> None:
        async with ScriptedBackend([answers()]) as backend, LiveFront(None, tmp_path, providers=models(backend)) as front:
            for model in ("m", "m", "n", "m"):
                await front.chat({"x-session-id": "s"}, model=model)
            assert front.counted("llm_session_model_transitions", "m", "n") == 1
            assert front.counted("llm_session_model_transitions", "n", "m") == 1
            other = [{"role": "user", "content": "good day"}]
            for model in ("m", "n"):  # strangers who begin with the same words
                await front.chat(model=model, messages=other)
            assert front.counted("llm_session_model_transitions", "m", "n") == 1
            await front.chat(model="m", messages=[*other, {"role": "assistant", "content": "hello"}, *HELLO])
            assert front.counted("llm_session_model_transitions", "n", "m") == 2

    run(work)


def test_sessions_are_forgotten_when_there_are_too_many() -> None:
    last = LastModels(most=2)
    assert [last.note(session, "m") for session in ("a", "b", "a", "c", "b", "c")] == [None, None, "m", None, None, "m"]


def test_the_phase_of_a_session_is_told_to_who_may_debug(tmp_path: Path) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    in_loop = [*HELLO, {"role": "assistant", "content": None, "tool_calls": [call]}, {"role": "tool", "tool_call_id": "c", "content": "42"}]

    async def work() -> None:
        async with ScriptedBackend([answers()]) as backend, LiveFront(backend, tmp_path, routing=ROUTING) as front:
            debug = {"x-vsr-debug": "true"}
            phases = [(await front.chat(debug, model=AUTO, messages=messages)).headers.get("x-vsr-session-phase") for messages in (HELLO, in_loop)]
            assert phases == ["user_turn", "tool_loop"]
            assert "x-vsr-session-phase" not in (await front.chat(model=AUTO)).headers

    run(work)
