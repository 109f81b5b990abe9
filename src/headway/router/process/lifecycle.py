"""RouterLifecycle: the parts of one router that outlive its configurations, and what happens around each of those."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from starlette.types import ASGIApp

from headway.errors import ConfigError
from headway.http.shutdown import Ending
from headway.router.config.document.document import Document
from headway.router.config.history.active import ActiveConfig
from headway.router.config.history.changes import restart_required
from headway.router.config.history.versions import VersionStore
from headway.router.config.load import load_document
from headway.router.deployments.deployments import RuntimeDeployments
from headway.router.generation.assembly import Places, assemble, used_deployments
from headway.router.generation.generation import Generation
from headway.router.generation.generations import Generations
from headway.router.generation.reload import Applied, Reloader
from headway.router.generation.services import Services
from headway.router.listener.app import PublicApp
from headway.router.management.access import Access
from headway.router.management.app import ManagementApp
from headway.router.management.state import ManagementState
from headway.router.process.metrics_app import metrics_app
from headway.router.process.overrides import overridden
from headway.router.process.referenced_files import referenced_files
from headway.router.process.settings import Address, ServeSettings
from headway.router.process.startup import FILE_NAME, Startup
from headway.router.process.watching import Change

_log = logging.getLogger(__name__)


class RouterLifecycle:
    """Made before the event loop runs; `open` and `close` bound its life on the loop."""

    def __init__(self, settings: ServeSettings, say: Callable[[str], None], document: Document) -> None:
        """`document` is the first configuration: what needs a restart is measured against it. Raises ConfigError."""
        self._settings, self._first = settings, document
        self.ending = Ending()
        self.services = Services(settings.state)
        self.generations = Generations()
        self.startup = Startup(settings.config.parent / FILE_NAME, say)
        self.reloader = Reloader(self.generations, self.services.metrics, settings.environment, self, self.load)
        access = Access.of(document, settings.environment)
        self._versions = VersionStore(settings.state / "config-versions")
        self._config = ActiveConfig(settings.config, self._versions, settings.environment, self._activate)
        self._management = ManagementState(settings, self.services, self.generations, self.startup, self.reloader, access, self._config)

    def management_app(self) -> ASGIApp:
        return ManagementApp(self._management)

    def metrics_app(self) -> ASGIApp:
        return metrics_app(self.services.metrics, self.generations)

    def public_app(self, address: Address) -> ASGIApp:
        return PublicApp(self.generations, address.name, self.ending)

    def load(self, text: str, environment: Mapping[str, str]) -> Document:
        """What `text` means for this process: the options of the command line hold for every configuration."""
        loaded = load_document(text, environment, self._settings.config.parent)
        for warning in loaded.diagnostics:
            _log.warning("%s: %s", self._settings.config.name, warning)
        return overridden(loaded.document, self._settings.overrides)

    async def prepare(self, text: str, document: Document, number: int) -> Generation:
        Access.of(document, self._settings.environment)
        version = await asyncio.to_thread(self._upcoming_version, text)
        deployments = RuntimeDeployments(document, self.services.runtimes, self._settings.environment)
        try:
            places = Places(number, version, self._settings.environment)
            generation = await asyncio.to_thread(assemble, document, deployments, self.services, places)
            deployments.start(used_deployments(generation))
            await deployments.wait(self._report)
        except BaseException:
            await deployments.close()
            raise
        return generation

    def _report(self, message: str, deployments: tuple[Mapping[str, Any], ...]) -> None:
        """How far the deployments of a configuration are. While an older one serves the router stays ready: then it is only logged."""
        if not deployments:
            return
        if self.generations.is_ready:
            _log.info("%s", message)
        else:
            self.startup.enter("loading_model_deployments", message, deployments)

    def activated(self, generation: Generation) -> tuple[str, ...]:
        self._management.access = Access.of(generation.document, self._settings.environment)
        generation.upstreams.start()
        return tuple(restart_required(self._first, generation.document))

    def referenced_files(self) -> Iterable[Path]:
        """Files that the configuration names: their change is a change of the configuration."""
        if not self.generations.is_ready:
            return ()
        return referenced_files(self.generations.current.document)

    async def offer_file(self, change: Change) -> None:
        """The file has new content, or one that it names. What is no text is refused like any other text that is no configuration."""
        text = change.content.decode(errors="replace")
        if not await self._config.is_echo(text):
            await self.offer(text, change.beside)

    async def offer(self, text: str, again: bool = False) -> Applied:
        applied = await self.reloader.apply(text, again=again)
        if applied.outcome in ("active", "unchanged"):
            await asyncio.to_thread(self._config.note, text)
        return applied

    async def _activate(self, text: str) -> None:
        """For changes over HTTP, which write the file afterwards."""
        applied = await self.reloader.apply(text)
        if applied.error is not None:
            raise applied.error
        if applied.outcome == "superseded":
            raise ConfigError("a later change serves", reason="config_superseded", fix="Read the configuration again.")

    def _upcoming_version(self, text: str) -> int:
        latest = self._versions.latest()
        if latest is None:
            return 1
        return latest.number if latest.yaml == text else latest.number + 1

    async def close(self) -> None:
        await self.reloader.close()
        await self.generations.close()
        await self.services.close()
