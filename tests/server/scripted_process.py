"""`python -m tests.server.scripted_process MODE [headway serve flags]`: the real server process around a scripted engine.

MODE: ready, loading (never gets ready), broken (loading fails), dying (dies after the first request), plain (a model
without a chat template), core (a real engine whose model is scripted; prompts with "hang" in them block its thread, steps with "slow" in a prompt take a while).
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

from headway.cli.serve_config import serve_config
from headway.engine.config import EngineConfig
from headway.engine.memory_use import MemoryUse
from headway.engine.outputs import RequestOutput
from headway.server import run
from headway.server.instruments import Instruments
from headway.telemetry.metrics import EngineMetrics
from tests.server.scripted_engine import ScriptedEngine, Status


class LoadingScript(ScriptedEngine):
    """Has the life of AsyncEngine around the script."""

    loaded = SimpleNamespace(capacity=SimpleNamespace(num_blocks=12), memory=MemoryUse(1 << 20, 2 << 20, None))

    def __init__(self, config: EngineConfig, mode: str):
        super().__init__("Grüße 🙂".encode())
        if mode == "plain":
            self.tokenizer.chat_template = None
        self.config = config
        self._mode = mode
        self.status = {
            "loading": Status("loading", 0.5),
            "broken": Status("dead", 0.5, "no such file: weights.bin"),
        }.get(mode, Status("ready"))

    @property
    def is_ready(self) -> bool:
        return self.status.stage == "ready"

    async def shutdown(self) -> None:
        self.status = Status("stopped")

    async def generate(self, *args: Any, **kwargs: Any) -> AsyncIterator[RequestOutput]:
        async for output in super().generate(*args, **kwargs):
            yield output
        if self._mode == "dying":
            self.status = Status("dead", 1.0, "kernel gave up")


def core_with_a_hang(config: EngineConfig, metrics: EngineMetrics) -> Any:
    from tests.cases.scripted_model import ScriptedModel, scripted_engine, scripted_tokenizer  # imports torch

    model = ScriptedModel(scripted_tokenizer())
    model.say_bytes(b"x" * 40)
    forever = threading.Event()

    def before_pass(plan: Any) -> None:
        prompts = " ".join(chunk.sequence.request.prompt or "" for chunk in plan.chunks)
        if "hang" in prompts:
            forever.wait()
        if "slow" in prompts:
            time.sleep(0.05)

    model.before_pass = before_pass
    return scripted_engine(model, metrics=metrics)[0]


def main(mode: str, words: list[str]) -> int:
    async def start(config: EngineConfig, metrics: EngineMetrics, watching: Instruments) -> Any:
        await asyncio.sleep(0)
        return core_with_a_hang(config, metrics) if mode == "core" else LoadingScript(config, mode)

    run.start_engine = start
    warnings: list[str] = []
    config = serve_config(words, os.environ, warnings.append)
    return run.serve(config.engine, config.server, warnings)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
