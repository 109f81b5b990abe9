"""Requests that a model of vectors cannot tell apart and that mean something else, on every backend."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.router.plugins.response_cache.backends import BACKENDS, cache, settings_of
from tests.router.plugins.rig import Rig, chat, run

DIFFERENT_TEXTS = [
    ("what is 2+2", "what is 2+3"),
    ("refund order 1001", "refund order 1002"),
    ("turn the light on", "turn the light off"),
    ("is it safe to mix these", "is it not safe to mix these"),
    ("tell me about ORD-17a", "tell me about ORD-18a"),
    ("what is the capital of france", "what is the capital of germany"),
    ("flights from Paris to Rome", "flights from Rome to Paris"),
    ("how to enable logging", "how to disable logging"),
    ("what is the capital of france", "quelle est la capitale de la france"),
    ("打开客厅的灯", "关闭客厅的灯"),
    ("这里可以吸烟吗", "这里不可以吸烟吗"),
    ("订单1001退款", "订单1002退款"),
    ("法国的首都是哪里", "德国的首都是哪里"),
]
SAME_TEXTS = [
    ("How do I reset my password?", "how can I reset my password"),
    ("turn the light on please", "please turn the light on"),
    ("请问如何重置密码", "怎么重置密码？"),
]
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
BASE = chat("what is the weather like")
DIFFERENT_REQUESTS: list[dict[str, Any]] = [
    {**BASE, "messages": [{"role": "system", "content": "You are a pirate."}, *BASE["messages"]]},
    {**BASE, "messages": [{"role": "user", "content": "in Rome"}, {"role": "assistant", "content": "yes"}, *BASE["messages"]]},
    {**BASE, "tools": [TOOL]},
    {**BASE, "temperature": 0.1},
    {**BASE, "model": "auto"},
    {**BASE, "response_format": {"type": "json_object"}},
    {**BASE, "stream": True},
    {**BASE, "max_tokens": 5},
    {**BASE, "a_field_that_nobody_knows": 1},
]
MODES = ["semantic", "exact_then_semantic"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("backend", BACKENDS)
def test_texts_that_mean_something_else_get_an_answer_of_their_own(tmp_path: Path, backend: str, mode: str) -> None:
    async def work() -> None:
        with settings_of(backend) as settings:
            for number, (first, second) in enumerate(DIFFERENT_TEXTS):
                rig = Rig(tmp_path / str(number), cache(mode=mode, revision={"cache_epoch": str(number)}), settings=settings)
                for one, other in ((first, second), (second, first)):
                    assert (await rig.ask(one)).path == "upstream" or one == second, one
                    told = await rig.ask(other)
                    assert told.path == "upstream" or other == first, (one, other)
                assert len(rig.sent) == 2, (first, second)
                await rig.services.close()

    run(work)


@pytest.mark.parametrize("backend", BACKENDS)
def test_texts_that_differ_in_words_without_weight_share_an_answer(tmp_path: Path, backend: str) -> None:
    async def work() -> None:
        with settings_of(backend) as settings:
            rig = Rig(tmp_path, cache(), settings=settings)
            for first, second in SAME_TEXTS:
                original = await rig.ask(first)
                told = await rig.ask(second)
                assert (original.path, told.path, told.text) == ("upstream", "cache", original.text)
                assert told.context.response_headers["x-vsr-cache-hit"] == "true"
                assert float(told.context.response_headers["x-vsr-cache-similarity"]) > 0.99
                assert len(told.context.response_headers["x-vsr-cache-entry"]) == 32
            await rig.services.close()

    run(work)


@pytest.mark.parametrize("backend", BACKENDS)
def test_every_field_that_can_change_the_answer_keeps_requests_apart(tmp_path: Path, backend: str) -> None:
    async def work() -> None:
        with settings_of(backend) as settings:
            rig = Rig(tmp_path, cache(mode="exact_then_semantic"), settings=settings)
            assert (await rig.ask(BASE)).path == "upstream"
            for body in DIFFERENT_REQUESTS:
                assert (await rig.ask(body)).path == "upstream", body
                assert (await rig.ask(body)).path == "cache", body
            assert (await rig.ask(BASE, protocol="anthropic")).path == "upstream"
            assert (await rig.ask({**BASE, "user": "x", "metadata": {"a": "b"}})).path == "cache"
            await rig.services.close()

    run(work)


def test_the_same_word_after_two_conversations(tmp_path: Path) -> None:
    async def work() -> None:
        rig = Rig(tmp_path, cache(mode="exact_then_semantic"))
        for said in ("Delete all files?", "Save all files?"):
            body = chat("yes")
            body["messages"] = [{"role": "assistant", "content": said}, *body["messages"]]
            assert (await rig.ask(body)).path == "upstream"

    run(work)


def test_below_the_threshold_nothing_is_shared_and_the_similarity_is_shown(tmp_path: Path) -> None:
    from tests.router.plugins.rig import apart
    from tests.router.scripted_calls import ScriptedCalls

    async def work() -> None:
        rig = Rig(tmp_path, cache(semantic={"similarity_threshold": 0.9}), models=ScriptedCalls(vectors=apart))
        await rig.ask("turn the light on please")
        told = await rig.ask("please turn the light on")
        assert told.path == "upstream"
        assert float(told.context.response_headers["x-vsr-cache-similarity"]) < 0.9

    run(work)
