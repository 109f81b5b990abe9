"""A worker on a real socket, on threads of this process, around models that are in memory already."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import httpx

from headway.http.listener import listen
from headway.http.server import HttpServer
from headway.runtime.execution.device_thread import DeviceThread
from headway.runtime.execution.execution_settings import ExecutionSettings
from headway.runtime.execution.scheduler import Scheduler
from headway.runtime.http.app import create_app
from headway.runtime.http.refusal import rendered
from headway.runtime.http.state import WorkerState
from headway.runtime.loaded_model import LoadedModel
from headway.runtime.loading.model_entry import ModelEntry
from headway.runtime.served_model import GoldenResult, Identity, Placed, Readiness, Running, ServedModel, ServedModels
from headway.runtime.settings import WorkerSettings


class LiveWorker:
    def __init__(self, url: str, state: WorkerState, loop: asyncio.AbstractEventLoop):
        self.url = url
        self.state = state
        self.loop = loop
        self.client = httpx.Client(base_url=url, trust_env=False, timeout=20)

    def post(self, path: str, body: Any, **more: Any) -> httpx.Response:
        return self.client.post(path, json=body, **more)

    def metric(self, line: str) -> float:
        """The value of one line of /metrics, 0 when it is not there."""
        found = [text for text in self.client.get("/metrics").text.splitlines() if text.startswith(line + " ")]
        return float(found[0].rsplit(" ", 1)[1]) if found else 0.0

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait until `condition()` holds on the server's loop; fails after ten seconds."""

        async def run() -> None:
            async with asyncio.timeout(10):
                while not condition():
                    await asyncio.sleep(0.002)

        asyncio.run_coroutine_threadsafe(run(), self.loop).result(15)

    def unanswered(self) -> int:
        """Jobs of all models."""
        return sum(m.running.scheduler.admission.jobs for m in self.state.models.models if m.running)


def served(
    model: LoadedModel, name: str, device: DeviceThread, state: WorkerState | None = None, **settings: Any
) -> ServedModel:
    """A model that is ready."""
    execution = replace(ExecutionSettings(), **settings)
    found = ServedModel(ModelEntry(f"/somewhere/{name}"), name)
    found.family = "arithmetic"
    found.running = Running(
        model, "arithmetic", tuple(model.planners), Identity(None, None, "0" * 64, ""),
        Placed("native", "cpu", True, "cpu"), execution,
        Scheduler(model, execution, device, state.observer(name) if state else None),
    )  # fmt: skip
    found.readiness = Readiness("ready")
    found.golden = GoldenResult("unverified")
    return found


@contextmanager
def live_worker(
    models: Mapping[str, LoadedModel], execution: Mapping[str, Any] | None = None, **settings: Any
) -> Iterator[LiveWorker]:
    """`execution` are fields of ExecutionSettings for all models, `settings` of WorkerSettings."""
    device = DeviceThread()
    worker_settings = WorkerSettings(port=0, **settings)
    entries: list[ServedModel] = []
    state = WorkerState(ServedModels(entries), worker_settings)
    entries += [served(model, name, device, state, **(execution or {})) for name, model in models.items()]
    listener = listen(worker_settings.http())
    server = HttpServer(create_app(state), worker_settings.http(), render=rendered)
    loops: list[asyncio.AbstractEventLoop] = []
    started = threading.Event()

    async def main() -> None:
        loops.append(asyncio.get_running_loop())
        started.set()
        await server.serve(sockets=[listener.socket])

    thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
    thread.start()
    assert started.wait(10)
    worker = LiveWorker(listener.url, state, loops[0])
    try:
        yield worker
    finally:
        worker.client.close()
        server.should_exit = True
        thread.join(10)
        listener.close()
        state.close()
        assert device.close()
        assert not thread.is_alive()
