"""The process of `headway run-batch`: loads the model, answers the file, ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Final

from headway.engine.config import EngineConfig
from headway.errors import ConfigError, NotBuiltError
from headway.server.app import create_app
from headway.server.batch.runner import BatchCount, run_batch
from headway.server.engine_start import start_engine
from headway.server.instruments import Instruments, instruments
from headway.server.lora.adapter_modules import adapter_modules
from headway.server.lora.first_adapters import first_adapters
from headway.server.routes import ROUTES
from headway.server.settings import ServerSettings
from headway.server.state import ServerState
from headway.telemetry.metrics import EngineMetrics

Tell = Callable[[str, float], None]
# What a line may ask: whatever the engine works for.
URLS: Final = frozenset(route.path for route in ROUTES if route.counted and "POST" in route.methods)
_LOOK_SECONDS: Final = 0.1


def answer_file(config: EngineConfig, settings: ServerSettings, source: str, target: str, tell: Tell) -> BatchCount:
    """`tell` hears of each stage how much of it is done, 0 to 1. Raises ConfigError, and the error of a model that cannot be loaded."""
    for name, place in (("--input-file", source), ("--output-file", target)):
        if place.startswith(("http://", "https://")):
            raise NotBuiltError(f"{name} is an address: a batch reads and writes files of this machine", param=name, fix="Name a file.")
    size = _size(source)
    if Path(target).exists() and Path(target).samefile(source):
        raise ConfigError("--output-file is the input file", param="--output-file", fix="Name another file.")
    adapter_modules(settings.lora_modules, config)  # wrong ones end it at once
    name = (config.served_model_name or (config.model,))[0]
    settings = replace(settings, api_key=())  # nobody comes in from outside
    with instruments(config, settings, name) as watching:
        return asyncio.run(_answer(config, settings, EngineMetrics(name), watching, (Path(source), size), Path(target), tell))


async def _answer(
    config: EngineConfig, settings: ServerSettings, metrics: EngineMetrics, watching: Instruments, source: tuple[Path, int], target: Path, tell: Tell
) -> BatchCount:
    engine = await start_engine(config, metrics, watching)
    loaded = asyncio.create_task(engine.ready())
    while not loaded.done():
        tell("loading the model", engine.status.progress)
        await asyncio.wait({loaded}, timeout=_LOOK_SECONDS)
    loaded.result()
    app = create_app(engine, settings, metrics)
    state: ServerState = app.state.headway
    path, size = source
    try:
        with path.open("rb") as lines, target.open("wb") as answers:
            state.serving.adapters = await first_adapters(engine, state)
            return await run_batch(
                app, lines, answers, urls=URLS, limits=state.limits, at_once=2 * engine.config.max_num_seqs, tell=lambda done: tell("answering", done / size)
            )
    finally:
        await engine.shutdown()


def _size(source: str) -> int:
    try:
        size = Path(source).stat().st_size
    except OSError as error:
        raise ConfigError(f"--input-file {source!r} cannot be read: {error.strerror}", param="--input-file") from error
    if not size:
        raise ConfigError(f"--input-file {source!r} is empty", param="--input-file")
    return size
