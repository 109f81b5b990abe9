"""serve: the process of `headway serve`, from taking the port to the exit code."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from headway.engine.config import EngineConfig
from headway.errors import HeadwayError
from headway.http.listener import Listener, listen
from headway.http.server import HttpServer
from headway.http.shutdown import drain, on_signals
from headway.http.tls import tls_context, warn_of_expiry
from headway.server.app import create_app
from headway.server.engine_start import PendingEngine, describe_cache, start_engine
from headway.server.instruments import Instruments, instruments
from headway.server.lora.adapter_modules import adapter_modules
from headway.server.lora.first_adapters import first_adapters
from headway.server.memory_care import give_memory_back
from headway.server.routes import ROUTES
from headway.server.run_file import noted, this_process
from headway.server.settings import ServerSettings
from headway.server.state import ServerState
from headway.server.swap.model_swap import ModelSwap
from headway.telemetry.bucket_choice import chosen_buckets
from headway.telemetry.logs import configure_logging
from headway.telemetry.metrics import EngineMetrics

if TYPE_CHECKING:
    from headway.engine.async_engine import AsyncEngine

_log = logging.getLogger(__name__)
_ENGINE_STOP_SECONDS = 5.0
_WATCH_SECONDS = 0.05


def serve(config: EngineConfig, settings: ServerSettings, warnings: Sequence[str] = ()) -> int:
    """Serve until a signal comes or the engine cannot be loaded; returns the exit code.

    `warnings` are sentences about the configuration for the log.

    The port is taken first: whoever connects while the model loads is told so. Raises ConfigError when it cannot be.
    """
    tls = tls_context(settings)
    adapter_modules(settings.lora_modules, config)  # wrong ones end the start at once
    listener = listen(settings)
    try:
        configure_logging("APIServer", level=settings.log_level, secrets=settings.api_key, config_file=settings.log_config_file)
        for sentence in warnings:
            _log.warning("%s", sentence)
        warn_of_expiry(settings)
        name = (config.served_model_name or (config.model,))[0]
        note_of_this = this_process(listener.url, name, listener.port, listener.uds)
        with noted(note_of_this) as note, instruments(config, settings, name) as watching:
            _log_start(listener, settings)
            buckets = chosen_buckets(settings.custom_histogram_buckets)
            metrics = EngineMetrics(name, legacy_names=settings.legacy_metric_names, buckets=buckets)
            app = create_app(PendingEngine(config), settings, metrics)
            http = HttpServer(app, settings, tls)
            with asyncio.Runner(loop_factory=http.config.get_loop_factory()) as runner:
                process = _Process(http, app.state.headway, metrics, watching, lambda: note.unlink(missing_ok=True))
                return runner.run(process.run(listener))
    finally:
        listener.close()


class _Process:
    """The tasks of one server process: HTTP, the engine's life, and the wait for a signal."""

    def __init__(
        self,
        http: HttpServer,
        state: ServerState,
        metrics: EngineMetrics,
        watching: Instruments,
        remove_note: Callable[[], None],
    ):
        self._http = http
        self._state = state
        self._metrics = metrics
        self._watching = watching
        self._remove_note = remove_note
        self._engine: AsyncEngine | None = None

    async def run(self, listener: Listener) -> int:
        stop = asyncio.Event()
        on_signals(stop, self._remove_note)
        http = asyncio.create_task(self._http.serve(sockets=[listener.socket]))
        engine = asyncio.create_task(self._engine_life())
        signalled = asyncio.create_task(stop.wait())
        care = asyncio.create_task(give_memory_back(lambda: self._state.engine.status))
        await asyncio.wait({http, engine, signalled}, return_when=asyncio.FIRST_COMPLETED)
        code = 0 if signalled.done() else 1
        await drain(self._state, self._state.settings.shutdown_timeout)  # still listens: who comes now is told why not
        self._http.stop_accepting()
        self._http.should_exit = True
        signalled.cancel()
        care.cancel()
        await asyncio.gather(http, self._end_engine(engine), return_exceptions=True)
        for task in (http, engine):
            if not task.cancelled() and (error := task.exception()) is not None:
                _log.error("the server failed", exc_info=error)
        return code

    async def _engine_life(self) -> None:
        """Returns when the process should end because of its engine."""
        if not await self._first_engine():
            return
        await self._until_over("dead")
        _log.error("The engine died: %s", self._state.engine.status.error)
        if not self._state.settings.exit_on_engine_death:
            await asyncio.Event().wait()  # /health tells the reason until somebody ends the process

    async def _first_engine(self) -> bool:
        """Whether it serves. Nothing here holds on to it after that: another may take its place."""
        pending = self._state.engine
        assert isinstance(pending, PendingEngine)
        engine = self._engine = pending.behind = await start_engine(pending.config, self._metrics, self._watching)
        await self._until_over("ready", engine)
        if not engine.is_ready:
            _log.error("The model cannot be served: %s", engine.status.error)
            return False
        try:
            adapters = await first_adapters(engine, self._state)
        except HeadwayError as error:
            _log.error("The adapters cannot be served: %s", error)
            return False
        self._describe(engine)
        if self._state.chat_template is None and engine.tokenizer.chat_template is None:
            _log.warning(
                "this model has no chat template: /v1/chat/completions will refuse messages. "
                "--chat-template FILE supplies one; /v1/completions needs none"
            )
        self._state.swap = ModelSwap(self._state, self._start_beside, self._describe)
        self._state.serve(engine)
        self._state.serving.adapters = adapters
        logging.getLogger("uvicorn.error").info("Application startup complete.")
        return True

    async def _start_beside(self, config: EngineConfig) -> AsyncEngine:
        return await start_engine(config, self._metrics, self._watching, beside=True)

    def _describe(self, engine: AsyncEngine) -> None:
        self._engine = engine
        describe_cache(self._metrics, engine)
        self._metrics.on_sleep(None)

    async def _until_over(self, stage: str, engine: AsyncEngine | None = None) -> None:
        """`engine` None: whichever serves."""
        stalled = False
        while (status := (engine or self._state.engine).status).stage not in (stage, "dead", "stopped"):
            seen = self._state.progress.look(status)
            if seen.stalled and not stalled:
                _log.error("The engine has not ended a step for %.0f s; %d request(s) wait for it", seen.still_seconds, seen.requests)
            stalled = seen.stalled
            await asyncio.sleep(_WATCH_SECONDS)

    async def _end_engine(self, life: asyncio.Task[None]) -> None:
        """End the engine's thread. One that is loading, or stuck in a step, is left to the end of the process."""
        life.cancel()
        if self._state.swap is not None:
            await self._state.swap.close()
        if self._engine is not None and self._engine.status.stage in ("ready", "restarting"):
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._engine.shutdown(), _ENGINE_STOP_SECONDS)


def _log_start(listener: Listener, settings: ServerSettings) -> None:
    _log.info("Starting vLLM server on %s", listener.url)
    if listener.uds is None and settings.host == "127.0.0.1":
        _log.info("listening on this machine only; --host 0.0.0.0 opens all interfaces")
    _log.info("Available routes are:")
    for route in (route for route in ROUTES if route.exists(settings)):
        _log.info("Route: %s, Methods: %s", route.path, ", ".join(route.methods))
