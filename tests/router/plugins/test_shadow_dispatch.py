"""shadow_dispatch: copies that the live request never feels."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from headway.errors import HeadwayError
from headway.router.plugins.completion import completion
from headway.router.request.context import RequestContext
from headway.router.request.reply import Reply
from headway.router.stores.replays.store import Filters
from tests.router.plugins.rig import Rig, chat, run


class Backends(Rig):
    """`shadow` answers copies."""

    def __init__(self, state: Path, shadow: Any, *more: Any, live: Any = None, **configuration: Any) -> None:
        plugin = ("shadow_dispatch", {"enabled": True, "model": "candidate", **configuration})
        super().__init__(state, plugin, *more, answers=live)
        self.copies: list[RequestContext] = []
        self.shadow = shadow

    async def send(self, context: RequestContext) -> Reply:
        assert context.selection is not None
        if context.selection.model != "candidate":
            return await super().send(context)
        self.copies.append(context)
        return await self.shadow(context)

    def results(self) -> dict[str, float]:
        found = {}
        for reason in ("completed", "queue_full", "timeout", "sampled_out", "transport_error", "upstream_status", "malformed_response", "response_too_large"):
            for result in ("completed", "failed", "dropped", "sampled_out"):
                count = self.services.metrics.value("sr_shadow_dispatch", "d", result, reason)
                if count:
                    found[f"{result}/{reason}"] = count
        return found


async def good(context: RequestContext) -> Reply:
    return Reply(body=completion("shadow", "candidate"))


async def hangs(context: RequestContext) -> Reply:
    await asyncio.sleep(60)
    raise AssertionError


@pytest.mark.parametrize("streams", [False, True])
def test_the_copy_is_what_the_backend_gets_without_streaming(tmp_path: Path, streams: bool) -> None:
    async def work() -> None:
        headers = {"add": [{"name": "x-tier", "value": "1"}, {"name": "x-other", "value": "2"}]}
        rig = Backends(
            tmp_path, good, ("system_prompt", {"system_prompt": "Be."}), ("header_mutation", headers), ("router_replay", {"enabled": True}), forward_headers=["X-Tier"]
        )
        told = await rig.ask(chat("q", stream=streams, stream_options={"include_usage": True}))
        await rig.services.background.settle()
        assert told.text == "answer 1"
        (copy,) = rig.copies
        assert copy.body == {"model": "vllm-sr/auto", "messages": [{"role": "system", "content": "Be."}, {"role": "user", "content": "q"}]}
        assert (copy.upstream_headers, copy.identity.user, copy.recipe) == ({"x-tier": "1"}, None, None)
        assert rig.results() == {"completed/completed": 1}
        store = rig.services.replays.current
        assert store is not None
        (outcome,) = store.get(str(told.context.replay_id))["outcomes"]
        assert (outcome["source"], outcome["target_ref"], outcome["verdict"]) == ("shadow_dispatch", "candidate", "completed")
        assert "text" not in outcome["metadata"]
        assert len(outcome["metadata"]["sha256"]) == 64
        assert len(store.find(Filters(), 9, 0)[0]) == 1
        await rig.services.close()

    run(work)


def test_copies_that_hang_are_bounded_and_the_live_answers_come(tmp_path: Path) -> None:
    async def work() -> None:
        rig = Backends(tmp_path, hangs, max_concurrency=1, max_queue_depth=2)
        for _ in range(6):
            assert (await rig.ask("q")).path == "upstream"
        await asyncio.sleep(0)
        assert (len(rig.copies), rig.results()) == (1, {"dropped/queue_full": 3})
        await rig.services.background.close()

    run(work)


def test_a_copy_that_is_late(tmp_path: Path) -> None:
    async def work() -> None:
        rig = Backends(tmp_path, hangs, timeout_seconds=1)
        await rig.ask("q")
        await rig.services.background.settle()
        assert rig.results() == {"failed/timeout": 1}

    run(work)


async def refuses(context: RequestContext) -> Reply:
    raise HeadwayError("gone", reason="upstream_failed")


async def server_error(context: RequestContext) -> Reply:
    return Reply(status=503, body={"error": {}})


async def nonsense(context: RequestContext) -> Reply:
    return Reply(raw=b"<html>")


async def huge(context: RequestContext) -> Reply:
    return Reply(raw=b"x" * 2000)


@pytest.mark.parametrize(
    ("shadow", "result", "tries"),
    [
        (refuses, "failed/transport_error", 3),
        (server_error, "failed/upstream_status", 3),
        (nonsense, "failed/malformed_response", 1),
        (huge, "failed/response_too_large", 1),
    ],
)
def test_copies_that_fail(tmp_path: Path, shadow: Any, result: str, tries: int) -> None:
    async def work() -> None:
        rig = Backends(tmp_path, shadow, max_retries=2, max_response_bytes=1000)
        assert (await rig.ask("q")).text == "answer 1"
        await rig.services.background.settle()
        assert (rig.results(), len(rig.copies)) == ({result: 1}, tries)

    run(work)


def test_sampling_and_the_same_model(tmp_path: Path) -> None:
    async def work() -> None:
        none = Backends(tmp_path, good, sample_rate=0.0)
        await none.ask("q")
        await none.services.background.settle()
        assert (none.copies, none.results()) == ([], {"sampled_out/sampled_out": 1})
        same = Backends(tmp_path, good, model="m")
        await same.ask("q")
        assert (same.copies, same.results()) == ([], {})

    run(work)


def test_a_live_request_that_fails_is_copied_too(tmp_path: Path) -> None:
    def fails(context: RequestContext) -> Reply:
        raise HeadwayError("gone", reason="upstream_failed")

    async def work() -> None:
        rig = Backends(tmp_path, good, live=fails)
        with pytest.raises(HeadwayError):
            await rig.ask("q")
        await rig.services.background.settle()
        assert rig.results() == {"completed/completed": 1}

    run(work)
