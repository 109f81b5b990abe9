"""Placement by prefixes over real sockets: scripted backends that tokenize and answer, and scripted publishers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from headway.router.prefixes.follower import Follower
from tests.router.prefixes.publisher import ScriptedPublisher
from tests.router.prefixes.wire import batch, stored
from tests.router.upstream.harness import Sender, document, free_port, run
from tests.router.upstream.scripted_backend import Asked, Script, ScriptedBackend, answers

TOKENS = list(range(40, 60))  # of every prompt here


def engine(tokenized: Callable[[Any], Any] = lambda body: TOKENS) -> Script:
    """Answers chats, and /tokenize with what `tokenized` makes of the body; None: 404."""

    async def script(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.path != "/tokenize":
            await answers()(asked, writer)
            return
        tokens = tokenized(asked.body)
        await answers(json.dumps({"count": 0, "tokens": tokens}).encode(), 404 if tokens is None else 200)(asked, writer)

    return script


def model(backends: list[ScriptedBackend], publisher: ScriptedPublisher | None, **settings: Any) -> dict[str, Any]:
    refs: list[dict[str, Any]] = [{"name": f"b{at}", "endpoint": backend.endpoint} for at, backend in enumerate(backends)]
    for at, ref in enumerate(refs):
        quiet = f"tcp://127.0.0.1:{free_port()}"  # nobody publishes there
        ref["kv_events"] = {"endpoint": publisher.endpoint, "replay_endpoint": publisher.replay} if publisher is not None and at == 1 else {"endpoint": quiet}
    return {"name": "m", "backend_refs": refs, "prefix_routing": {"tokenize_timeout": "20s", **settings}}


def follower(sender: Sender, at: int) -> Follower:
    return next(each for each in sender.services.followers._followers.values() if each._names[1] == f"m/b{at}")


async def known(sender: Sender, publisher: ScriptedPublisher, *events: Any) -> None:
    """The router knows that b1 holds what `events` tell."""
    await asyncio.to_thread(publisher.wait_for_subscriber)
    publisher.send(0, batch(*events))
    while not len(follower(sender, 1).index):
        await asyncio.sleep(0.005)


def chats(backend: ScriptedBackend) -> int:
    return sum(each.path != "/tokenize" for each in backend.asked)


def placements(sender: Sender, outcome: str) -> float:
    return sender.services.metrics.value("headway_prefix_placements", "m", outcome)


async def closed(sender: Sender) -> None:
    await sender.services.followers.close()
    await sender.close()


def test_requests_go_to_the_backend_that_holds_their_beginning() -> None:
    async def work() -> None:
        with ScriptedPublisher() as publisher:
            async with ScriptedBackend([engine()]) as first, ScriptedBackend([engine()]) as second:
                sender = Sender(document([model([first, second], publisher)]))
                sender.upstreams.start()
                assert [(await sender.send())[0].status for _ in range(2)] == [200, 200]
                assert (chats(first), chats(second), placements(sender, "empty")) == (1, 1, 2)
                await known(sender, publisher, stored([1, 2], None, TOKENS[:8], 4))
                for _ in range(6):
                    await sender.send()
                assert (chats(first), chats(second), placements(sender, "held")) == (1, 7, 6)
                assert sum(each.path == "/tokenize" for each in first.asked + second.asked) == 1  # the same prompt is asked for once
                asked = next(each for each in first.asked + second.asked if each.path == "/tokenize")
                assert asked.body == {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
                await closed(sender)

    run(work, 240)


def test_a_beginning_that_is_too_short_or_another_does_not_count() -> None:
    async def work() -> None:
        with ScriptedPublisher() as publisher:
            async with ScriptedBackend([engine()]) as first, ScriptedBackend([engine()]) as second:
                sender = Sender(document([model([first, second], publisher, least_share=0.5)]))
                sender.upstreams.start()
                await known(sender, publisher, stored([1, 2], None, TOKENS[:8], 4), stored([9], None, [1] * 4, 4))
                for _ in range(4):
                    await sender.send()
                assert (chats(first), chats(second), placements(sender, "not_held")) == (2, 2, 4)
                await closed(sender)

    run(work, 240)


def test_a_holder_that_is_too_busy_is_passed_over() -> None:
    async def work() -> None:
        with ScriptedPublisher() as publisher:
            async with ScriptedBackend([engine()]) as first, ScriptedBackend([engine()]) as second:
                sender = Sender(document([model([first, second], publisher, most_ahead=2)]))
                sender.upstreams.start()
                await known(sender, publisher, stored([1], None, TOKENS[:12], 12))
                state = sender.upstreams.models["m"].pool.states[1]
                state.in_flight = 3
                await sender.send()
                state.in_flight = 2
                await sender.send()
                assert (chats(first), chats(second)) == (1, 1)
                assert (placements(sender, "busy"), placements(sender, "held")) == (1, 1)
                await closed(sender)

    run(work, 240)


@pytest.mark.parametrize("tokenized", [lambda body: None, lambda body: "words", lambda body: [1.5, "x"], lambda body: [-1]])
def test_without_tokens_backends_are_chosen_as_ever_and_nobody_asks_again_soon(tokenized: Callable[[Any], Any]) -> None:
    async def work() -> None:
        with ScriptedPublisher() as publisher:
            async with ScriptedBackend([engine(tokenized)]) as first, ScriptedBackend([engine(tokenized)]) as second:
                sender = Sender(document([model([first, second], publisher)]))
                sender.upstreams.start()
                await known(sender, publisher, stored([1], None, TOKENS[:12], 12))
                assert [(await sender.send())[0].status for _ in range(4)] == [200] * 4
                assert (chats(first), chats(second), placements(sender, "no_tokens")) == (2, 2, 4)
                assert len(first.asked) + len(second.asked) == 5
                await closed(sender)

    run(work, 240)


def test_an_answer_that_takes_too_long_is_not_waited_for() -> None:
    async def stuck(asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.path == "/tokenize":
            await asyncio.sleep(600)
        await answers()(asked, writer)

    async def work() -> None:
        with ScriptedPublisher() as publisher:
            async with ScriptedBackend([stuck]) as first, ScriptedBackend([stuck]) as second:
                sender = Sender(document([model([first, second], publisher, tokenize_timeout="50ms")]))
                sender.upstreams.start()
                await known(sender, publisher, stored([1], None, TOKENS[:12], 12))
                assert [(await sender.send())[0].status for _ in range(2)] == [200] * 2
                assert placements(sender, "no_tokens") == 2
                await closed(sender)

    run(work, 240)


def test_completions_are_looked_up_by_text_or_by_their_own_tokens() -> None:
    async def work() -> None:
        with ScriptedPublisher() as publisher:
            async with ScriptedBackend([engine()]) as first, ScriptedBackend([engine()]) as second:
                sender = Sender(document([model([first, second], publisher)]))
                sender.upstreams.start()
                await known(sender, publisher, stored([1], None, TOKENS[:12], 12))
                for prompt in ("some text", TOKENS):
                    context = sender.context({"model": "m", "prompt": prompt})
                    context.protocol = "completions"
                    await sender.upstreams.send(context)
                assert (chats(first), chats(second)) == (0, 2)
                assert [each.body for each in first.asked + second.asked if each.path == "/tokenize"] == [{"model": "m", "prompt": "some text"}]
                salted = sender.context({"model": "m", "messages": [{"role": "user", "content": "hi"}], "cache_salt": "s"})
                await sender.upstreams.send(salted)
                assert placements(sender, "special") == 1
                await closed(sender)

    run(work, 240)


def test_a_reload_keeps_what_is_known_and_ends_what_nobody_follows() -> None:
    async def work() -> None:
        with ScriptedPublisher() as publisher:
            async with ScriptedBackend([engine()]) as first, ScriptedBackend([engine()]) as second:
                found = document([model([first, second], publisher)])
                sender = Sender(found)
                sender.upstreams.start()
                await known(sender, publisher, stored([1], None, TOKENS[:12], 12))
                kept = follower(sender, 1)
                again = Sender(found, sender.services)
                again.upstreams.start()
                assert follower(again, 1) is kept
                assert len(kept.index) == 1
                await again.send()
                assert chats(second) == 1
                plain = {"name": "m", "backend_refs": [{"name": "b0", "endpoint": first.endpoint}]}
                Sender(document([plain]), sender.services).upstreams.start()
                assert sender.services.followers._followers == {}
                await asyncio.to_thread(kept.join, 30)
                assert len(kept.index) == 0
                await closed(sender)

    run(work, 240)
