"""Engines on one tiny model that give each other KV blocks, and a relay that stands between two of them."""

from __future__ import annotations

import asyncio
import itertools
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from headway.engine.async_engine import AsyncEngine
from headway.engine.config import EngineConfig
from headway.engine.core import Observers
from headway.engine.kv_transfer.params import transfer_params
from headway.engine.outputs import RequestOutput
from headway.engine.request_terms import RequestTerms
from headway.engine.sampling_params import SamplingParams
from headway.telemetry.metrics import EngineMetrics

T = TypeVar("T")
PATIENCE = 120.0
PROMPT = [3 + (i * i) % 150 for i in range(70)]  # 4 full blocks and 6 tokens
BLOCK_BYTES = 12288  # of the tiny model, in float32
_ids = itertools.count()


class Started:
    """An engine with `role`, None = an ordinary one. `transfer` are more fields of --kv-transfer-config."""

    def __init__(self, folder: Path, role: str | None, transfer: Mapping[str, Any] | None = None, **config: Any):
        given: dict[str, Any] = {"max_model_len": 96, "num_gpu_blocks_override": 40, "dtype": "float32", **config}
        if role is not None:
            patient = {"kv_connector_extra_config": {"pull_timeout": 300}}
            given["kv_transfer_config"] = {"kv_connector": "HeadwayConnector", "kv_role": role, "kv_port": 0, **patient, **(transfer or {})}
        self.metrics = EngineMetrics("tiny")
        self.engine = AsyncEngine(EngineConfig(str(folder), **given), Observers(self.metrics.on_step, on_transfer=self.metrics.on_transfer))
        self.engine.start()
        asyncio.run(self.engine.ready())

    async def ask(self, prompt: list[int], max_tokens: int = 8, transfer: Mapping[str, Any] | None = None, **sampling: Any) -> RequestOutput:
        params = SamplingParams(**{"temperature": 0, "max_tokens": max_tokens, "ignore_eos": True, "logprobs": 3, **sampling})
        terms = RequestTerms(kv_transfer=transfer_params(transfer))
        last = None
        async for output in self.engine.generate(prompt, params, f"r{next(_ids)}", terms):
            last = output
        assert last is not None
        return last

    async def prefill(self, prompt: list[int]) -> dict[str, Any]:
        """What a decoding engine is to be told."""
        told = (await self.ask(prompt, 1, {"do_remote_decode": True})).kv_transfer_params
        assert told is not None
        return told

    def metric(self, name: str, **labels: str) -> float:
        """The sum of all samples of that name with these labels."""
        found = 0.0
        for family in self.metrics.collect():
            for sample in family.samples:
                if sample.name == name and labels.items() <= sample.labels.items():
                    found += sample.value
        return found

    def outcome(self, name: str) -> float:
        return self.metric("headway:kv_transfers_total", outcome=name)

    @property
    def held_blocks(self) -> int:
        pool = self.engine.loaded.core.scheduler.kv.pool
        return pool.num_blocks - 1 - pool.num_free

    def close(self) -> None:
        asyncio.run(self.engine.shutdown())


def run(body: Callable[[], Awaitable[T]]) -> T:
    async def bounded() -> T:
        return await asyncio.wait_for(body(), PATIENCE)

    return asyncio.run(bounded())


def until(condition: Callable[[], bool]) -> None:
    """Wait for `condition`; fails after two minutes."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it did not come true"
        time.sleep(0.02)


class Relay:
    """Forwards one connection after the other to `port`; what the far end says goes through `change(data, offset)`, and None from it
    closes the connection at that place."""

    def __init__(self, port: int, change: Callable[[bytes, int], bytes | None]):
        self._target, self._change = port, change
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._target))
                threading.Thread(target=self._pump, args=(near, far, lambda data, at: data), daemon=True).start()
                threading.Thread(target=self._pump, args=(far, near, self._change), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, change: Callable[[bytes, int], bytes | None]) -> None:
        at = 0
        with suppress(OSError):
            while data := source.recv(4096):
                changed = change(data, at)
                if changed is None:
                    break
                sink.sendall(changed)
                at += len(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
