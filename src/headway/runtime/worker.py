"""run_worker: the process of `vllm-srun serve`, from taking the port to the exit code."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Final

from headway.http.listener import Listener, listen
from headway.http.server import HttpServer
from headway.http.shutdown import drain, on_signals
from headway.runtime.execution.device_thread import DeviceThread
from headway.runtime.execution.execution_settings import ExecutionSettings
from headway.runtime.execution.scheduler import Scheduler
from headway.runtime.http.app import create_app
from headway.runtime.http.refusal import rendered
from headway.runtime.http.state import WorkerState
from headway.runtime.loaded_model import LoadedModel
from headway.runtime.loading.load_thread import RealClock, Retries, load_all
from headway.runtime.loading.loader import ModelLoader
from headway.runtime.loading.model_entry import ModelEntry
from headway.runtime.loading.package_source import default_name
from headway.runtime.plugins import PluginSet
from headway.runtime.served_model import Readiness, ServedModel, ServedModels
from headway.runtime.settings import WorkerSettings
from headway.runtime.threads import use_threads
from headway.telemetry.logs import configure_logging

_log = logging.getLogger(__name__)
DEVICE_FAULT_CODE: Final = 3
DEVICE_FAULT_SECONDS: Final = 0.5  # for answers on their way and for a supervisor to see the state
_DEVICE_STOP_SECONDS: Final = 10.0


def run_worker(entries: Sequence[ModelEntry], settings: WorkerSettings) -> int:
    """Serve until a signal comes; returns the exit code.

    The port is taken first: whoever connects while models load is told so. Raises ConfigError when it cannot be, or when
    two plug-ins or two models have the same name.
    """
    plugins = PluginSet.installed()
    models = ServedModels([ServedModel(entry, name) for entry, name in zip(entries, names_of(entries), strict=True)])
    http_settings = settings.http()
    listener = listen(http_settings)
    try:
        configure_logging("vllm-srun", level=settings.log_level.upper(), secrets=settings.api_key)
        use_threads(settings.threads)
        _log.info("listening on %s, models: %s", listener.url, ", ".join(model.name for model in models.models))
        state = WorkerState(models, settings)
        process = _Process(state, HttpServer(create_app(state), http_settings, render=rendered), plugins)
        with asyncio.Runner(loop_factory=process.loop_factory) as runner:
            return runner.run(process.run(listener))
    finally:
        listener.close()


def names_of(entries: Sequence[ModelEntry]) -> list[str]:
    """One name for each model. Two models with the same default name are told apart by a number."""
    names: list[str] = []
    for entry in entries:
        wanted = entry.name or default_name(entry)
        name, number = wanted, 2
        while name in names:
            name, number = f"{wanted}-{number}", number + 1
        names.append(name)
    return names


class _Process:
    """The tasks of one worker: HTTP, the loader thread, the device thread, and the wait for a signal."""

    def __init__(self, state: WorkerState, http: HttpServer, plugins: PluginSet):
        self._state = state
        self._http = http
        self._clock = RealClock()
        self._device = DeviceThread()
        self._loader = ModelLoader(plugins, state.settings, self._device, self._start_scheduler)
        self.loop_factory = http.config.get_loop_factory()

    async def run(self, listener: Listener) -> int:
        stop = asyncio.Event()
        on_signals(stop, lambda: None)
        http = asyncio.create_task(self._http.serve(sockets=[listener.socket]))
        loader = threading.Thread(target=self._load, name="loader", daemon=True)
        loader.start()
        signalled = asyncio.create_task(stop.wait())
        await asyncio.wait({http, signalled}, return_when=asyncio.FIRST_COMPLETED)
        code = 0 if signalled.done() else 1
        self._clock.stop()
        await drain(self._state, self._state.settings.shutdown_timeout)
        self._http.stop_accepting()
        self._http.should_exit = True
        signalled.cancel()
        await asyncio.gather(http, return_exceptions=True)
        # A forward pass is waited for; weights that are being read are not: the end of the process harms them not.
        await asyncio.to_thread(self._device.close, 0.0 if loader.is_alive() else _DEVICE_STOP_SECONDS)
        return code

    def _load(self) -> None:
        settings = self._state.settings
        load_all(self._state.models.models, self._loader.load, Retries(settings.load_attempts, settings.load_retry_seconds), self._clock)

    def _start_scheduler(
        self, served: ServedModel, model: LoadedModel, settings: ExecutionSettings, is_fault: Callable[[BaseException], bool]
    ) -> Scheduler:
        def failed(error: BaseException) -> None:
            if is_fault(error):
                end_after_fault(served, error)

        return Scheduler(model, settings, self._device, self._state.observer(served.name), failed)


def end_after_fault(
    served: ServedModel,
    error: BaseException,
    leave: Callable[[int], None] = os._exit,
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """A device that is broken stays so until the process ends: say so, then let a supervisor start a new one."""
    served.readiness = Readiness("degraded", f"{type(error).__name__}: the device failed: {error}")
    _log.critical("%s: the device failed (%s); the process ends with code %d", served.name, error, DEVICE_FAULT_CODE)

    def end() -> None:
        sleep(DEVICE_FAULT_SECONDS)
        leave(DEVICE_FAULT_CODE)

    threading.Thread(target=end, name="device-fault", daemon=True).start()
