"""The application on a real socket, served by uvicorn on a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from headway.http.listener import listen
from headway.http.server import HttpServer
from headway.http.tls import tls_context
from headway.server.app import create_app
from headway.server.settings import ServerSettings
from headway.server.state import ServerState
from headway.telemetry.metrics import EngineMetrics
from tests.server.scripted_engine import ScriptedEngine


class Live:
    def __init__(self, url: str, engine: ScriptedEngine, state: ServerState, loop: asyncio.AbstractEventLoop):
        self.url = url
        self.engine = engine
        self.state = state
        self.loop = loop

    def on_loop(self, call: Any) -> Any:
        """Run `call()` on the server's loop and wait for it."""

        async def run() -> Any:
            return call()

        return asyncio.run_coroutine_threadsafe(run(), self.loop).result(10)

    def hold(self, after: int) -> None:
        """Requests stop after that many tokens until `release`."""
        self.engine.hold, self.engine.hold_after = self.on_loop(asyncio.Event), after

    def release(self) -> None:
        assert self.engine.hold is not None
        self.on_loop(self.engine.hold.set)

    def until(self, condition: Any) -> None:
        """Wait until `condition()` holds on the server's loop; fails after ten seconds."""

        async def run() -> None:
            async with asyncio.timeout(10):
                while not condition():
                    await asyncio.sleep(0.005)

        asyncio.run_coroutine_threadsafe(run(), self.loop).result(15)


@contextmanager
def live(engine: Any = None, metrics: EngineMetrics | None = None, **settings: Any) -> Iterator[Live]:
    """`engine` is a ScriptedEngine unless it is given; `metrics` are those that it reports to."""
    chosen = engine or ScriptedEngine()
    config = ServerSettings(port=0, **settings)
    listener = listen(config)
    app = create_app(chosen, config, metrics or EngineMetrics("tiny", max_model_len=chosen.max_model_len))
    server = HttpServer(app, config, tls_context(config))
    loops: list[asyncio.AbstractEventLoop] = []
    started = threading.Event()

    async def main() -> None:
        loops.append(asyncio.get_running_loop())
        started.set()
        await server.serve(sockets=[listener.socket])

    thread = threading.Thread(target=lambda: asyncio.run(main()), daemon=True)
    thread.start()
    assert started.wait(10)
    try:
        yield Live(listener.url, chosen, app.state.headway, loops[0])
    finally:
        if getattr(chosen, "hold", None) is not None:
            loops[0].call_soon_threadsafe(chosen.hold.set)
        server.should_exit = True
        thread.join(10)
        listener.close()
        assert not thread.is_alive()
