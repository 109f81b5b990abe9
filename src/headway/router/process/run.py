"""run_router: the process of `vllm-sr serve`, from its configuration to its exit code."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence

from starlette.types import ASGIApp

from headway.errors import ConfigError, HeadwayError
from headway.http.listener import Listener, listen
from headway.http.server import HttpServer
from headway.http.settings import HttpSettings
from headway.http.shutdown import drain, on_signals
from headway.http.tls import tls_context
from headway.router.config.document.document import Document
from headway.router.config.load import load_document
from headway.router.process.lifecycle import RouterLifecycle
from headway.router.process.log_file import also_to_file
from headway.router.process.overrides import overridden
from headway.router.process.settings import Address, ServeSettings, addresses
from headway.router.process.watching import contents
from headway.telemetry.logs import configure_logging

_log = logging.getLogger(__name__)
_CLOSE_SECONDS = 15.0  # a model runtime has ten to end
_WATCH_PAUSE_SECONDS = 5.0


class StartupTimeoutError(HeadwayError):
    """The router was not ready in time."""

    reason = "startup_timeout"


def run_router(settings: ServeSettings, say: Callable[[str], None], noted: Callable[[Sequence[tuple[str, str]]], contextlib.AbstractContextManager[object]]) -> int:
    """Serve until a signal comes; returns the exit code.

    `say` gets each sentence for whoever waits in the terminal; `noted` is open, with the addresses, while the router runs. The configuration is
    checked and the ports are taken first. Raises ConfigRejected, ConfigError, StartupTimeoutError, and what stops the first configuration from
    serving.
    """
    loaded = load_document(settings.config, settings.environment)
    document = overridden(loaded.document, settings.overrides)
    settings.state.mkdir(mode=0o700, parents=True, exist_ok=True)
    configure_logging("vllm-sr", level=settings.log_level.upper())
    also_to_file(settings.state)
    with contextlib.ExitStack() as stack:
        servers: list[tuple[Address, Listener]] = []
        for address in addresses(document, settings):
            listener = _taken(address, document)
            stack.callback(listener.close)
            servers.append((address, listener))
        stack.enter_context(noted([(address.name, listener.url) for address, listener in servers]))
        process = _Process(settings, loaded.source.text, document, servers, say)
        with asyncio.Runner(loop_factory=process.loop_factory) as runner:
            return runner.run(process.run())


def _taken(address: Address, document: Document) -> Listener:
    """Raises ConfigError; a port that is taken is told with what moves it here, where no flag does."""
    try:
        return listen(_http_settings(address, document))
    except ConfigError as error:
        if error.reason != "port_in_use":
            raise
        fix = f"Stop the other one (a router: `vllm-sr stop`), change {address.port_key}, or move all ports with VLLM_SR_PORT_OFFSET."
        found = error.message.removesuffix(error.fix or "").rstrip(". ")
        raise ConfigError(f"{address.name}: {found}", reason=error.reason, param=address.port_key, fix=fix) from error


def _http_settings(address: Address, document: Document) -> HttpSettings:
    tls = address.listener.tls if address.listener else None
    return HttpSettings(
        host=address.host,
        port=address.port,
        ssl_certfile=str(document.place(tls.cert_file)) if tls else None,
        ssl_keyfile=str(document.place(tls.key_file)) if tls else None,
        enable_ssl_refresh=tls is not None,
        uvicorn_log_level="warning",
        disable_uvicorn_access_log=True,
        timeout_keep_alive=60.0,
    )


class _Process:
    """The tasks of one router: its servers, the first configuration, the watch on its file, and the wait for a signal."""

    def __init__(
        self, settings: ServeSettings, text: str, document: Document, places: Sequence[tuple[Address, Listener]], say: Callable[[str], None]
    ) -> None:  # fmt: skip
        self._settings, self._text, self._seen = settings, text, text.encode()
        self._lifecycle = RouterLifecycle(settings, say, document)
        self._servers = [(HttpServer(self._app(address), http := _http_settings(address, document), tls_context(http)), listener) for address, listener in places]
        self._urls = {address.name: listener.url for address, listener in places}
        self.loop_factory = self._servers[0][0].config.get_loop_factory()

    def _app(self, address: Address) -> ASGIApp:
        if address.name == "management":
            return self._lifecycle.management_app()
        if address.name == "metrics":
            return self._lifecycle.metrics_app()
        return self._lifecycle.public_app(address)

    async def run(self) -> int:
        stop = asyncio.Event()
        on_signals(stop, self._lifecycle.startup.end)
        serving = [asyncio.create_task(server.serve(sockets=[listener.socket])) for server, listener in self._servers]
        life = asyncio.create_task(self._life(stop))
        signalled = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({*serving, life, signalled}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            code = 0 if signalled.done() else 1
            await self._end(serving, life, signalled)
        if life.done() and not life.cancelled() and (error := life.exception()) is not None:
            raise error
        return code

    async def _life(self, stop: asyncio.Event) -> None:
        """Returns never by itself; raises when the first configuration cannot serve."""
        first = asyncio.create_task(self._lifecycle.offer(self._text))
        done, _ = await asyncio.wait({first}, timeout=self._settings.startup_timeout)
        if not done:
            seconds = f"{self._settings.startup_timeout:g} s"
            self._lifecycle.startup.enter("error", f"The router did not become ready within {seconds}")
            raise StartupTimeoutError(f"the router did not become ready within {seconds}", fix="Raise --startup-timeout, or see the log above.")
        applied = first.result()
        if applied.error is not None:
            self._lifecycle.startup.enter("error", applied.error.message)
            raise applied.error
        self._lifecycle.startup.enter("ready", self._ready_sentence())
        while not stop.is_set():
            try:
                await self._watch(stop)
            except Exception:  # a file system that cannot be watched harms the reload, not the requests
                _log.exception("the watch on the configuration failed and begins again in %g s", _WATCH_PAUSE_SECONDS)
                await asyncio.sleep(_WATCH_PAUSE_SECONDS)

    async def _watch(self, stop: asyncio.Event) -> None:
        """Each change is offered as it is seen: a later one need not wait for one that is being prepared."""
        reloads: set[asyncio.Task[None]] = set()
        async for change in contents(self._settings.config, self._seen, self._lifecycle.referenced_files, stop):
            self._seen = change.content
            reloads.add(reload := asyncio.create_task(self._lifecycle.offer_file(change)))
            reload.add_done_callback(reloads.discard)

    def _ready_sentence(self) -> str:
        listeners = ", ".join(url for name, url in self._urls.items() if name not in ("management", "metrics"))
        rest = ", ".join(f"{name} {url}" for name, url in self._urls.items() if name in ("management", "metrics"))
        return f"The router is ready on {listeners} ({rest})"

    async def _end(self, serving: Sequence[asyncio.Task[None]], life: asyncio.Task[None], signalled: asyncio.Task[bool]) -> None:
        self._lifecycle.startup.enter("stopping", "Stopping")
        life.cancel()
        signalled.cancel()
        await drain(self._lifecycle.ending, self._settings.drain)  # still listens: who comes now is told why not
        for server, _ in self._servers:
            server.stop_accepting()
            server.should_exit = True
        await asyncio.gather(*serving, return_exceptions=True)
        with contextlib.suppress(asyncio.CancelledError, HeadwayError):
            await asyncio.wait({life})
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await self._lifecycle.close()
        self._lifecycle.startup.end()
