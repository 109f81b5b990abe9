"""ModelSwap: who answers whom, when the old engine ends, and what a failure leaves."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import httpx
import pytest

from headway.engine.config import EngineConfig
from headway.errors import CapacityError, EngineDeadError, HeadwayError, RequestError
from headway.server.app import create_app
from headway.server.settings import ServerSettings
from headway.server.state import ServerState
from headway.server.swap.model_swap import ModelSwap
from headway.server.swap.next_config import next_config
from headway.telemetry.metrics import EngineMetrics
from tests.server.scripted_engine import ScriptedEngine


class Swappable(ScriptedEngine):
    """Says its own name; `loaded` lets it become ready."""

    def __init__(self, name: str):
        super().__init__(name.encode())
        self.config = EngineConfig(name)
        self.loaded = asyncio.Event()
        self.loaded.set()
        self.failure: HeadwayError | None = None
        self.ended = False
        self.operations = self

    async def ready(self) -> None:
        await self.loaded.wait()
        if self.failure is not None:
            raise EngineDeadError("it could not be loaded")

    async def resume(self) -> None: ...

    async def shutdown(self) -> None:
        self.ended = True


class World:
    """A server of the model "first"; `engines` are those that swaps start, by model."""

    def __init__(self) -> None:
        self.first = Swappable("first")
        self.app = create_app(self.first, ServerSettings(server_dev_mode=True), EngineMetrics("first", max_model_len=200))
        self.state: ServerState = self.app.state.headway
        self.engines: dict[str, Swappable] = {}
        self.described: list[Any] = []
        self.state.swap = ModelSwap(self.state, self._start, self.described.append)  # type: ignore[arg-type]
        self.client = httpx.AsyncClient(transport=httpx.ASGITransport(self.app, raise_app_exceptions=False), base_url="http://test")

    async def _start(self, config: EngineConfig) -> Any:
        return self.engines.setdefault(config.model, Swappable(config.model))

    async def say(self) -> str:
        answer = await self.client.post("/v1/completions", json={"prompt": "Who?", "max_tokens": 20})
        assert answer.status_code == 200, answer.text
        return str(answer.json()["choices"][0]["text"])

    async def swap(self, model: str) -> httpx.Response:
        return await self.client.post("/swap_model", json={"model": model})

    async def retired(self) -> None:
        while (await self.client.get("/swap_model")).json()["retiring"]:
            await asyncio.sleep(0.01)


def run(body: Any) -> None:
    async def whole() -> None:
        world = World()
        async with world.client:
            await body(world)

    asyncio.run(asyncio.wait_for(whole(), 30))


def test_old_requests_end_with_the_old_model_and_new_ones_begin_with_the_new() -> None:
    async def body(world: World) -> None:
        assert await world.say() == "first"
        world.first.hold, world.first.hold_after = asyncio.Event(), 2
        old = asyncio.create_task(world.say())
        while not world.first.active:
            await asyncio.sleep(0.001)
        answer = await world.swap("second")
        assert answer.json() | {"seconds": 0} == {"model": "second", "previous": "first", "seconds": 0}
        assert world.described == [world.engines["second"]]
        assert await world.say() == "second"
        fingerprints = {world.state.fingerprint}
        assert not world.first.ended
        assert (await world.client.get("/swap_model")).json()["retiring"] == 1
        assert (await world.client.get("/v1/models")).json()["data"][0] | {"created": 0} == {
            **(await world.client.get("/v1/models")).json()["data"][0], "id": "first", "root": "second", "created": 0,
        }  # fmt: skip
        world.first.hold.set()
        assert await old == "first"
        await world.retired()
        assert world.first.ended
        gone = weakref.ref(world.first)
        world.first = world.engines["second"]
        gc.collect()
        assert gone() is None, "somebody holds on to an engine that has ended"
        assert len(fingerprints) == 1

    run(body)


def test_a_model_that_fails_leaves_the_old_one_and_says_why() -> None:
    async def body(world: World) -> None:
        for cause, status, reason in (
            (CapacityError("the new one needs 3 GiB, and 2 GiB are available"), 507, "does_not_fit"),
            (RequestError("it is broken"), 400, "swap_failed"),
        ):
            broken = world.engines[reason] = Swappable(reason)
            broken.failure = cause
            answer = await world.swap(reason)
            assert (answer.status_code, answer.json()["error"]["reason"]) == (status, reason)
            assert cause.message in answer.json()["error"]["message"]
            assert (await world.client.get("/swap_model")).json()["state"] == "failed"
            assert await world.say() == "first"
        assert not world.first.ended
        assert (await world.swap("second")).status_code == 200
        assert (await world.client.get("/swap_model")).json()["state"] == "idle"

    run(body)


def test_one_swap_at_a_time_and_a_client_that_leaves_stops_nothing() -> None:
    async def body(world: World) -> None:
        slow = world.engines["slow"] = Swappable("slow")
        slow.loaded.clear()
        first = asyncio.create_task(world.swap("slow"))
        while (await world.client.get("/swap_model")).json()["state"] == "idle":
            await asyncio.sleep(0.001)
        seen = (await world.client.get("/swap_model")).json()
        assert (seen["state"], seen["next"], seen["stage"]) == ("loading", "slow", "ready")
        refused = await world.swap("other")
        assert (refused.status_code, refused.json()["error"]["reason"]) == (409, "swap_in_progress")
        assert await world.say() == "first"
        first.cancel()
        slow.loaded.set()
        while world.state.serving.engine is not slow:
            await asyncio.sleep(0.001)
        assert await world.say() == "slow"

    run(body)


def test_what_passes_from_one_model_to_the_next() -> None:
    now = EngineConfig("old", tokenizer="its own", quantization="int8", max_num_seqs=7, dtype="float32", hf_overrides={"a": 1})
    other = next_config(now, ("name",), {"model": "new", "max_model_len": "4k"})
    assert (other.model, other.served_model_name) == ("new", ("name",))
    assert (other.tokenizer, other.quantization, other.hf_overrides) == (None, None, {})
    assert (other.max_num_seqs, other.dtype, other.max_model_len) == (7, "float32", 4000)
    same = next_config(now, ("name",), {"model": "old", "seed": 3})
    assert (same.tokenizer, same.quantization, same.seed) == ("its own", "int8", 3)
    for fields, param in (({}, "model"), ({"model": 3}, "model"), ({"model": "x", "api_key": "y"}, "api_key"), ({"model": "x", "dtype": "int3"}, "dtype"), ({"model": "x", "logits_processors": ["os:system"]}, "logits_processors")):
        with pytest.raises(RequestError) as caught:
            next_config(now, ("name",), fields)
        assert caught.value.param == param


def test_all_that_a_request_does_is_done_with_one_engine() -> None:
    async def body(world: World) -> None:
        first, second = world.first, Swappable("second")
        with world.state.one_engine():
            task = asyncio.create_task(asyncio.sleep(0, world.state))
            world.state.serve(second)  # type: ignore[arg-type]
            assert world.state.engine is first
            assert await asyncio.to_thread(lambda: world.state.engine) is first
            assert (await task).engine is first
        assert world.state.engine is second

    run(body)
