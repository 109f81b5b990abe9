"""Budgets of keys under parallel requests: what is held back, what is refused and with which words."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from headway.router.config.document.document import Document
from headway.router.listener.budgets import UNSAID_TOKENS, estimated
from headway.router.listener.price_bounds import PriceBound, compile_price_bounds
from headway.router.listener.prices import compile_prices
from headway.router.spend.reservations import Reservations
from tests.router.listener.live_front import LiveFront, run
from tests.router.upstream.scripted_backend import (
    DONE,
    WHOLE,
    Asked,
    Script,
    ScriptedBackend,
    answers,
    chunk,
    hangs_up,
    never,
    streams,
)

ALICE = {"authorization": "Bearer ka"}
TEN_TOKENS: dict[str, Any] = {"max_tokens": 10}  # and a prompt of 2: 0.002 + 0.020 at these prices
PRICED: dict[str, Any] = {"pricing": {"prompt_per_1m": 1000.0, "completion_per_1m": 2000.0}}
USED_ALL = {**WHOLE, "usage": {"prompt_tokens": 2, "completion_tokens": 10, "total_tokens": 12}}


def keyed(amount: float, per: str = "day") -> dict[str, Any]:
    key = {"name": "alice", "key": "ka", "budget": {"amount": amount, "per": per}}
    return {"listeners": [{"name": "public", "port": 1, "keys": [key]}]}


def when(open_: asyncio.Event, script: Script) -> Script:
    async def waits(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await open_.wait()
        await script(asked, writer)

    return waits


def test_parallel_requests_cannot_go_over_a_budget(tmp_path: Path) -> None:
    async def work() -> None:
        gate = asyncio.Event()
        async with ScriptedBackend([when(gate, answers(USED_ALL))]) as backend, LiveFront(backend, tmp_path, model=PRICED, **keyed(0.05)) as front:
            running = [asyncio.create_task(front.chat(ALICE, **TEN_TOKENS)) for _ in range(8)]
            async with asyncio.timeout(10):
                while sum(task.done() for task in running) < 6:  # 0.022 each: two fit into 0.05
                    await asyncio.sleep(0.005)
            refused = next(task.result() for task in running if task.done())
            gate.set()
            found = sorted([answer.status_code for answer in await asyncio.gather(*running)])
            assert found == [200] * 2 + [429] * 6
            assert len(backend.asked) == 2
            assert refused.headers["retry-after"] == "1"  # somebody else's request may cost less than it holds back
            assert refused.headers["x-headway-budget-reserved"] == "0.044000"
            assert "Requests under way" in refused.json()["error"]["message"]
            assert front.counted("headway_key_spend", "alice", "USD") == pytest.approx(0.044)
            assert front.services.reservations.held("alice", "USD") == 0

    run(work)


def test_what_a_request_did_not_use_is_free_again(tmp_path: Path) -> None:
    async def work() -> None:
        async with ScriptedBackend([answers()]) as backend, LiveFront(backend, tmp_path, model=PRICED, **keyed(0.05)) as front:
            found = [(await front.chat(ALICE, **TEN_TOKENS)).status_code for _ in range(4)]
            assert found == [200, 200, 200, 429]  # 0.011 each, of 0.022 held back: the fourth would find 0.017

    run(work)


@pytest.mark.parametrize("script", [hangs_up, answers({"error": {"message": "no"}}, 500)])
def test_failures_hold_nothing_back(tmp_path: Path, script: Script) -> None:
    async def work() -> None:
        async with ScriptedBackend([script]) as backend, LiveFront(backend, tmp_path, model=PRICED, **keyed(0.03)) as front:
            assert [(await front.chat(ALICE, **TEN_TOKENS)).status_code >= 500 for _ in range(3)] == [True] * 3
            assert front.services.reservations.held("alice", "USD") == 0

    run(work)


def test_a_client_that_leaves_and_a_stream_hold_nothing_back(tmp_path: Path) -> None:
    told = b"data: " + json.dumps({"choices": [], "usage": {"prompt_tokens": 2, "completion_tokens": 1, "total_tokens": 3}}).encode() + b"\n\n"

    async def work() -> None:
        scripts = [never, streams(chunk("a"), chunk("", "stop"), told, DONE)]
        async with ScriptedBackend(scripts) as backend, LiveFront(backend, tmp_path, model=PRICED, **keyed(0.03)) as front:
            leaving = asyncio.create_task(front.chat(ALICE, **TEN_TOKENS))
            async with asyncio.timeout(10):
                while not backend.asked:
                    await asyncio.sleep(0.005)
                assert front.services.reservations.held("alice", "USD") == pytest.approx(0.022)
                leaving.cancel()
                while front.services.reservations.held("alice", "USD"):
                    await asyncio.sleep(0.005)
            assert (await front.chat(ALICE, stream=True, **TEN_TOKENS)).status_code == 200
            assert front.services.reservations.held("alice", "USD") == 0
            assert front.counted("headway_key_spend", "alice", "USD") == pytest.approx(0.004)

    run(work)


@pytest.mark.parametrize(
    ("per", "words"), [("day", "It renews at 20"), ("month", "-01T00:00:00Z"), ("total", "It does not renew")]
)
def test_a_refusal_says_what_is_left_what_was_asked_and_when_the_budget_renews(tmp_path: Path, per: str, words: str) -> None:
    async def work() -> None:
        async with ScriptedBackend([answers()]) as backend, LiveFront(backend, tmp_path, model=PRICED, **keyed(0.02, per)) as front:
            refused = await front.chat(ALICE, max_tokens=100)
            error = refused.json()["error"]
            assert (refused.status_code, error["reason"], backend.asked) == (429, "budget_exceeded", [])
            assert "0.020000 USD left" in error["message"]
            assert "may cost 0.202000" in error["message"]
            assert words in error["message"]
            assert "max_tokens" in error["message"]
            assert ("retry-after" in refused.headers) == (per != "total")
            assert (await front.chat(ALICE, max_tokens=5)).status_code == 200

    run(work)


def test_without_a_limit_of_tokens_one_request_may_have_what_is_left(tmp_path: Path) -> None:
    async def work() -> None:
        gate = asyncio.Event()
        async with ScriptedBackend([when(gate, answers())]) as backend, LiveFront(backend, tmp_path, model=PRICED, **keyed(0.05)) as front:
            first = asyncio.create_task(front.chat(ALICE))
            async with asyncio.timeout(10):
                while not backend.asked:
                    await asyncio.sleep(0.005)
            assert front.services.reservations.held("alice", "USD") == pytest.approx(0.05)
            assert (await front.chat(ALICE)).status_code == 429
            gate.set()
            assert (await first).status_code == 200
            assert (await front.chat(ALICE)).status_code == 200

    run(work)


def test_estimates_of_prompt_and_answer() -> None:
    bound = PriceBound(1_000_000.0, 2_000_000.0)
    chat = {"messages": [{"role": "user", "content": "x" * 40}]}
    assert estimated({**chat, "max_tokens": 5}, bound, 0) == estimated({**chat, "max_completion_tokens": 5, "max_tokens": 9}, bound, 0)
    said = estimated({**chat, "max_tokens": 5, "n": 3}, bound, 0)
    assert (said.prompt_tokens, said.sure, said.likely) == (10, 10 + 2 * 15, 10 + 2 * 15)
    unsaid = estimated(chat, bound, 0)
    assert (unsaid.sure, unsaid.likely) == (10, 10 + 2 * UNSAID_TOKENS)
    assert estimated({"input": "text"}, bound, 41).prompt_tokens == 11


def test_the_bound_of_a_recipe_is_its_dearest_model_and_all_of_a_cascade() -> None:
    def model(name: str, prompt: float, completion: float, currency: str = "USD") -> dict[str, Any]:
        return {"name": name, "pricing": {"prompt_per_1m": prompt, "completion_per_1m": completion, "currency": currency}}

    models = [model("a", 1, 9), model("b", 5, 2), model("e", 7, 7, "EUR"), model("unused", 99, 99)]
    one = {"name": "one", "modelRefs": [{"model": "a"}, {"model": "b"}, {"model": "e"}]}
    cascade = {"name": "two", "modelRefs": [{"model": "a"}, {"model": "b"}], "algorithm": {"type": "confidence"}}

    def bounds(**routing: Any) -> Any:
        document = Document.model_validate({"version": "v0.3", "providers": {"models": models}, "routing": routing})
        return compile_price_bounds(document, compile_prices(document))["default"]

    assert bounds(decisions=[one]) == {"USD": PriceBound(5, 9), "EUR": PriceBound(7, 7)}
    assert bounds(decisions=[one, cascade])["USD"] == PriceBound(6, 11)


def test_reservations_end_at_zero_and_release_once() -> None:
    found = Reservations()
    holds = [found.hold("k", "USD", 0.1) for _ in range(3)]
    for hold in holds:
        hold.release()
        hold.release()
    assert found.held("k", "USD") == 0.0
