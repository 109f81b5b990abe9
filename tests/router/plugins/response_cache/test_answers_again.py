"""Which answers are kept, how they come back, and what clients may say about it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import redis

from headway.router.deployments.calls import Unanswered
from headway.router.plugins.completion import chunks_of_body, completion
from headway.router.request.context import RequestContext
from headway.router.request.reply import Reply
from tests.router.plugins.response_cache.backends import BACKENDS, cache, settings_of
from tests.router.plugins.rig import EMBEDDING, Rig, alike, chat, cut, run
from tests.router.scripted_calls import ScriptedCalls
from tests.router.stores.redis_process import SERVER, redis_server

CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}


def with_message(message: Mapping[str, Any], finish: str = "stop") -> dict[str, Any]:
    body = completion("", "m", finish)
    body["choices"][0]["message"] = {"role": "assistant", **message}
    return body


KEPT: list[tuple[dict[str, Any], bool, bool]] = [  # answer, to the same request, to a similar one
    (with_message({"content": "yes"}), True, True),
    (with_message({"content": None, "tool_calls": [CALL]}, "tool_calls"), True, False),
    (with_message({"content": "cut he"}, "length"), False, False),
    (with_message({"content": "x"}, "content_filter"), False, False),
    (with_message({"content": ""}), False, False),
    ({"choices": []}, False, False),
    ({"error": {"message": "no"}, **with_message({"content": "x"})}, False, False),
    (with_message({"content": "x" * (2 << 20)}), False, False),
]


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize(("answer", "same", "similar"), KEPT)
def test_which_answers_are_kept(tmp_path: Path, answer: dict[str, Any], same: bool, similar: bool, streams: bool) -> None:
    def reply(context: RequestContext) -> Reply | dict[str, Any]:
        if streams and "error" in answer:
            return Reply(chunks=cut([*chunks_of_body(answer, False), {"error": {"message": "no"}}]))
        return answer

    async def work() -> None:
        rig = Rig(tmp_path, cache(mode="exact_then_semantic"), answers=reply)
        body = chat("tell me all about it", stream=streams)
        await rig.ask(body)
        again = await rig.ask(body)
        assert (again.path == "cache") == same
        other = await rig.ask(chat("please tell me all about it", stream=streams))
        assert (other.path == "cache") == similar

    run(work)


@pytest.mark.parametrize("status", [201, 400, 429, 500])
def test_other_statuses_are_not_kept(tmp_path: Path, status: int) -> None:
    async def work() -> None:
        rig = Rig(tmp_path, cache(), answers=lambda context: Reply(status=status, body=completion("x", "m")))
        assert [(await rig.ask("q")).path for _ in range(2)] == ["upstream", "upstream"]

    run(work)


def test_a_stream_that_breaks_off_is_not_kept(tmp_path: Path) -> None:
    async def work() -> None:
        whole = list(chunks_of_body(completion("a long answer", "m"), False))
        rig = Rig(tmp_path, cache(), answers=lambda context: Reply(chunks=cut(whole[:-1])))
        body = chat("q", stream=True)
        assert [(await rig.ask(body)).path for _ in range(2)] == ["upstream", "upstream"]

    run(work)


def test_a_reader_that_leaves_keeps_nothing(tmp_path: Path) -> None:
    async def work() -> None:
        from headway.router.answering import answer
        from headway.router.request.deadline import Deadline
        from tests.router.plugins.rig import ALICE

        rig = Rig(tmp_path, cache())
        context = RequestContext(rig.generation, chat("q", stream=True), {}, ALICE, Deadline.after(9), "r")
        reply = await answer(context)
        assert reply.chunks is not None
        await anext(reply.chunks)
        await reply.chunks.aclose()  # type: ignore[attr-defined]
        assert (await rig.ask(chat("q", stream=True))).path == "upstream"

    run(work)


def test_everything_of_a_message_comes_back_in_a_stream(tmp_path: Path) -> None:
    body = with_message({"content": "x" * 200, "reasoning_content": "because", "refusal": None, "tool_calls": [CALL]}, "tool_calls")
    body["choices"].append({**with_message({"content": "other"})["choices"][0], "index": 1})
    body["usage"] = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7}

    async def work() -> None:
        from headway.router.plugins.completion import Collected

        rig = Rig(tmp_path, cache(mode="exact"), answers=lambda context: body)
        request = chat("q", stream=True, stream_options={"include_usage": True})
        first, second = await rig.ask(request), await rig.ask(request)
        assert second.path == "cache"
        collected = []
        for told in (first, second):
            whole = Collected()
            for chunk in told.chunks:
                whole.add(chunk)
            collected.append(whole.body())
        assert collected[0] == collected[1]
        assert collected[1]["choices"][0]["message"]["tool_calls"] == [CALL]
        assert collected[1]["usage"] == body["usage"]
        plain = await rig.ask(chat("q", stream=True))
        assert all("usage" not in chunk for chunk in plain.chunks)

    run(work)


@pytest.mark.parametrize("backend", BACKENDS)
def test_entries_end_with_their_time(tmp_path: Path, backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        with settings_of(backend, ttl_seconds=60) as settings:
            rig = Rig(tmp_path, cache(), settings=settings)
            await rig.ask("q")
            assert (await rig.ask("q")).path == "cache"
            if backend == "redis":  # its clock counts
                client = redis.Redis(port=settings["stores"]["response_cache"]["redis"]["connection"]["port"])
                (entry,) = client.keys("headway:cache:e:*")
                assert 0 < client.pttl(entry) <= 60_000
                client.pexpire(entry, 1)
                while client.exists(entry):
                    await asyncio.sleep(0.01)
            else:
                later = time.time() + 61
                monkeypatch.setattr(time, "time", lambda: later)
            assert (await rig.ask("q")).path == "upstream"
            await rig.services.close()

    run(work)


CONTROLS = {"enabled": True, "allowed": ["no-cache", "no-store", "bypass", "max-age", "ttl"], "max_ttl_seconds": 100}


def test_what_clients_may_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def work() -> None:
        rig = Rig(tmp_path, cache(request_controls=CONTROLS))

        async def ask(said: str) -> tuple[str, str | None]:
            told = await rig.ask("q", headers={"x-vsr-cache-control": said})
            return told.path, told.context.cache_status

        assert await ask("no-store") == ("upstream", "miss")
        assert await ask("bypass") == ("upstream", "bypass")
        assert await ask("") == ("upstream", "miss")
        assert await ask("no-store") == ("cache", "hit")
        assert await ask("no-cache") == ("upstream", "bypass")
        assert await ask("nonsense, max-age=x") == ("cache", "hit")
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + 30)
        assert await ask("max-age=10") == ("upstream", "miss")
        assert await ask("ttl=5000, no-cache") == ("upstream", "bypass")
        monkeypatch.setattr(time, "time", lambda: now + 131)
        assert await ask("") == ("upstream", "miss")

    run(work)


def test_directives_that_a_route_does_not_allow_change_nothing(tmp_path: Path) -> None:
    async def work() -> None:
        for settings in ({}, {"request_controls": {"enabled": True, "allowed": ["ttl"]}}):
            rig = Rig(tmp_path, cache(**settings))
            for path in ("upstream", "cache"):
                assert (await rig.ask("q", headers={"x-vsr-cache-control": "bypass, no-cache"})).path == path

    run(work)


def test_a_model_that_does_not_answer_leaves_the_same_request(tmp_path: Path) -> None:
    async def work() -> None:
        rig = Rig(tmp_path, cache(), models=ScriptedCalls(vectors=lambda _: Unanswered("unavailable")))
        await rig.ask("how are you")
        assert (await rig.ask("how are you")).path == "cache"
        assert (await rig.ask("please how are you")).path == "upstream"

    run(work)


def test_a_text_that_the_model_reads_in_part_is_not_compared(tmp_path: Path) -> None:
    async def work() -> None:
        class Partial(ScriptedCalls):
            async def embed(self, *args: Any, **kwargs: Any) -> Any:
                from dataclasses import replace

                return replace(await super().embed(*args, **kwargs), read_all=False)

        rig = Rig(tmp_path, cache(), models=Partial(vectors=alike))
        await rig.ask("how are you")
        assert (await rig.ask("please how are you")).path == "upstream"
        assert (await rig.ask("how are you")).path == "cache"

    run(work)


@pytest.mark.parametrize("server", [SERVER] if SERVER else [])
def test_redis_that_goes_away_is_a_miss_and_never_an_error(tmp_path: Path, server: str) -> None:
    async def work() -> None:
        with redis_server() as (port, process):
            connection = {"host": "127.0.0.1", "port": port}
            settings = {**EMBEDDING, "stores": {"response_cache": {"backend_type": "redis", "redis": {"connection": connection}}}}
            rig = Rig(tmp_path, cache(), settings=settings)
            await rig.ask("q")
            assert (await rig.ask("q")).path == "cache"
            process.kill()
            process.wait()
            for _ in range(3):
                told = await rig.ask("q")
                assert (told.path, told.text[:6]) == ("upstream", "answer")
            store = rig.services.response_caches.all[0]
            assert "Redis does not answer" in str(await store.trouble())
            await rig.services.close()

    run(work)


@pytest.mark.parametrize("plugin", [("masking", {"enabled": True}), ("rag", {"enabled": True, "backend": "vectorstore", "backend_config": {"vector_store_id": "x"}})])
def test_requests_that_are_personalized_are_kept_as_exact_copies_at_most(tmp_path: Path, plugin: tuple[str, Any]) -> None:
    async def work() -> None:
        settings = {**EMBEDDING, "stores": {"vector_store": {"enabled": True, "metadata_store": "memory"}}}
        models = ScriptedCalls(vectors=alike, spans=lambda text: [], decisions=lambda question, state: {"type": "span", "spans": []})
        off = Rig(tmp_path, cache(), plugin, settings=settings, models=models)
        assert [(await off.ask("how are you")).path for _ in range(2)] == ["upstream", "upstream"]
        exact = Rig(tmp_path, cache(personalized={"mode": "exact"}), plugin, settings=settings, models=models)
        assert [(await exact.ask("how are you")).path for _ in range(2)] == ["upstream", "cache"]
        assert (await exact.ask("please how are you")).path == "upstream"

    run(work)


def test_a_change_of_the_decision_begins_anew(tmp_path: Path) -> None:
    async def work() -> None:
        with settings_of("sqlite") as settings:
            paths = []
            for text in ("Be kind.", "Be kind.", "Be brief."):
                rig = Rig(tmp_path, cache(), ("system_prompt", {"system_prompt": text}), settings=settings)
                paths.append((await rig.ask("q")).path)
                await rig.services.close()
            assert paths == ["upstream", "cache", "upstream"]

    run(work)
