"""The step before: a prefill engine is asked for one token, and the backend hears where the blocks are, or is asked as ever."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from headway.router.config.document.document import Document
from headway.router.config.rules.providers import provider_backends
from headway.router.upstream.asking import Question
from headway.router.upstream.health import BackendState
from tests.router.upstream.harness import Sender, document, free_port, model, pieces, run
from tests.router.upstream.scripted_backend import (
    DONE,
    WHOLE,
    Asked,
    Script,
    ScriptedBackend,
    answers,
    chunk,
    never,
    streams,
)

PLACE = {"do_remote_prefill": True, "do_remote_decode": False, "remote_host": "10.0.0.1", "remote_port": 5, "remote_engine_id": "e", "remote_request_id": "r"}


def prefilled(params: Any = PLACE, status: int = 200) -> Script:
    return answers(json.dumps({**WHOLE, "kv_transfer_params": params}).encode(), status)


def found(prefill: str, backend: str, **fields: Any) -> Document:
    return document([model("m", backend, prefill_refs=[{"name": "p", "endpoint": prefill}], **fields)])


def outcomes(sender: Sender, outcome: str) -> float:
    return sender.services.metrics.value("headway_prefills", "m", "m/prefill/p", outcome)


def states(sender: Sender) -> list[BackendState]:
    prefills = sender.upstreams.models["m"]._prefills
    assert prefills is not None
    return list(prefills._pool.states)


def test_the_backend_hears_where_the_blocks_are() -> None:
    async def work() -> None:
        async with ScriptedBackend([prefilled()]) as first, ScriptedBackend([answers(), streams(chunk("a"), chunk("b", "stop"), DONE)]) as second:
            sender = Sender(found(first.endpoint, second.endpoint))
            reply, _ = await sender.send()
            assert reply.status == 200
            asked, then = first.asked[0].body, second.asked[0].body
            assert (asked["max_tokens"], asked["stream"], asked["kv_transfer_params"]) == (1, False, {"do_remote_decode": True, "do_remote_prefill": False})
            assert asked["messages"] == then["messages"]
            assert first.asked[0].path == second.asked[0].path == "/v1/chat/completions"
            assert then["kv_transfer_params"] == PLACE
            assert "max_tokens" not in then
            reply, _ = await sender.send(stream=True)
            assert b"".join(await pieces(reply)).endswith(b"data: [DONE]\n\n")
            assert second.asked[1].body["stream"] is True
            assert second.asked[1].body["kv_transfer_params"] == PLACE
            assert outcomes(sender, "ok") == 2
            await sender.close()

    run(work)


def test_what_shapes_the_answer_stays_with_the_backend() -> None:
    async def work() -> None:
        async with ScriptedBackend([prefilled()]) as first, ScriptedBackend([answers()]) as second:
            sender = Sender(found(first.endpoint, second.endpoint))
            shaping = {"n": 3, "min_tokens": 5, "max_completion_tokens": 9, "logprobs": True, "top_logprobs": 2, "stream_options": {"include_usage": True}}
            context = sender.context({"model": "vllm-sr/auto", "messages": [{"role": "user", "content": "hi"}], "stream": True, "temperature": 0.3, **shaping})
            await sender.upstreams.send(context)
            assert not shaping.keys() & first.asked[0].body.keys()
            assert first.asked[0].body["temperature"] == 0.3
            assert shaping.keys() <= second.asked[0].body.keys()
            await sender.close()

    run(work)


@pytest.mark.parametrize(
    ("script", "outcome", "rests"),
    [
        (prefilled(None), "nothing_kept", False), (prefilled(PLACE, 400), "status_400", False), (prefilled(PLACE, 500), "status_500", True),
        (answers(b"{"), "bad_body", True), (answers(b"[]"), "nothing_kept", False),
    ],
)  # fmt: skip
def test_without_blocks_the_backend_is_asked_as_ever(script: Script, outcome: str, rests: bool) -> None:
    async def work() -> None:
        async with ScriptedBackend([script]) as first, ScriptedBackend([answers()]) as second:
            sender = Sender(found(first.endpoint, second.endpoint))
            for _ in range(2):
                reply, _ = await sender.send()
                assert reply.status == 200
            assert ["kv_transfer_params" in asked.body for asked in second.asked] == [False, False]
            assert outcomes(sender, outcome) == (1 if rests else 2)
            assert outcomes(sender, "resting") == (1 if rests else 0)
            assert len(first.asked) == (1 if rests else 2)
            await sender.close()

    run(work)


def test_an_engine_that_is_away_rests_and_comes_back() -> None:
    async def work() -> None:
        port = free_port()
        async with ScriptedBackend([answers()]) as second:
            sender = Sender(found(f"127.0.0.1:{port}", second.endpoint))
            for _ in range(3):
                assert (await sender.send())[0].status == 200
            assert outcomes(sender, "connect_failed") == 1
            assert outcomes(sender, "resting") == 2
            states(sender)[0].ejected_until = 0.0  # the rest is over
            async with ScriptedBackend([prefilled()], port=port):
                assert (await sender.send())[0].status == 200
            assert second.asked[-1].body["kv_transfer_params"] == PLACE
            await sender.close()

    run(work)


def test_a_silent_engine_costs_its_time_and_no_more() -> None:
    async def work() -> None:
        async with ScriptedBackend([never]) as first, ScriptedBackend([answers()]) as second:
            sender = Sender(found(first.endpoint, second.endpoint, reliability={"first_byte_timeout": "1s"}))
            assert (await sender.send())[0].status == 200
            assert outcomes(sender, "first_byte_timeout") == 1
            await sender.close()

    run(work)


def test_a_client_that_leaves_ends_the_prefill() -> None:
    async def work() -> None:
        begun = asyncio.Event()

        async def silent(asked: Asked, writer: asyncio.StreamWriter) -> None:
            begun.set()
            await asyncio.Event().wait()

        async with ScriptedBackend([silent]) as first, ScriptedBackend([answers()]) as second:
            sender = Sender(found(first.endpoint, second.endpoint))
            task = asyncio.create_task(sender.send())
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert sender.upstreams.models["m"].pool.in_flight == 0
            assert not second.asked
            while not first.gone:
                await asyncio.sleep(0.01)
            await sender.close()

    run(work)


@pytest.mark.parametrize(
    "body",
    [
        {"input": "embedded"}, {"prompt": ["one", "two"]}, {"prompt": "a", "kv_transfer_params": PLACE}, {"prompt": "a", "use_beam_search": True},
    ],
)  # fmt: skip
def test_other_requests_pass_as_they_are(body: dict[str, Any]) -> None:
    async def work() -> None:
        async with ScriptedBackend([prefilled()]) as first, ScriptedBackend([answers()]) as second:
            sender = Sender(found(first.endpoint, second.endpoint))
            payload = json.dumps(body).encode()
            exchange = await sender.upstreams.models["m"].ask(Question(lambda backend: payload, lambda backend: {}))
            await exchange.read()
            assert not first.asked
            assert second.asked[0].body == body
            await sender.close()

    run(work)


def test_other_apis_have_no_prefill() -> None:
    told = list(provider_backends(found("127.0.0.1:1", "127.0.0.1:2", api_format="anthropic")))
    assert [each.reason for each in told if "prefill_refs" in each.path] == ["model_incoherent"]
