"""ActiveConfig: the configuration that serves, its file and its versions, changed by one writer at a time."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from headway.errors import ConfigError
from headway.router.config.diagnostics import ConfigRejected
from headway.router.config.history.plan import Mode, Plan, plan
from headway.router.config.history.versions import Origin, StaleError, Version, VersionStore, etag_of, write_private
from headway.router.config.load import read_source

Activate = Callable[[str], Awaitable[None]]
"""Makes a text serve; raises HeadwayError when it cannot, and the one before goes on serving."""


class RestartRequiredError(ConfigError):
    """A change that only a new start of the process can make."""

    reason = "restart_required"


@dataclass(frozen=True, slots=True)
class Changed:
    """`version` serves now; `plan` is what changed."""

    version: Version
    plan: Plan


class ActiveConfig:
    """`file` is the source that is watched; `activate` is called before anything is written, so a text that cannot serve leaves no trace."""

    def __init__(self, file: Path, versions: VersionStore, environment: Mapping[str, str], activate: Activate):
        self._file, self._versions, self._environment, self._activate = file, versions, environment, activate
        self._writing = asyncio.Lock()
        self._ours: set[str] = set()

    @property
    def text(self) -> str:
        """What the file says. Raises ConfigError `config_unreadable`."""
        return read_source(self._file).text

    @property
    def folder(self) -> Path:
        """Where relative names in it begin."""
        return self._file.parent

    async def is_echo(self, text: str) -> bool:
        """Whether `text`, seen in the file, is one of ours that has been replaced since: a look at the file may come late. Waits for a change over
        HTTP that is half-way, between its activation and its file."""
        async with self._writing:
            return etag_of(text) in self._ours and self.text != text

    @property
    def etag(self) -> str:
        return etag_of(self.text)

    @property
    def versions(self) -> VersionStore:
        return self._versions

    def note(self, text: str, origin: Origin = "file") -> Version:
        """A text that serves, however it came to."""
        return self._versions.record(text, origin)

    def plan(self, given: str, mode: Mode) -> Plan:
        return plan(self.text, given, mode, self._environment, self.folder)

    async def apply(self, given: str, mode: Mode, if_match: str) -> Changed:
        """Compare-and-swap.

        Raises StaleError, ConfigRejected, RestartRequiredError, and what `activate` raises.
        """
        async with self._writing:
            return await self._replace(given, mode, if_match, "api", None)

    async def rollback(self, number: int, if_match: str) -> Changed:
        """Bring version `number` back, as a new version. Raises NotFoundError and what `apply` raises."""
        async with self._writing:
            restored = await asyncio.to_thread(self._versions.get, number)
            return await self._replace(restored.yaml, "replace", if_match, "rollback", number)

    async def _replace(self, given: str, mode: Mode, if_match: str, origin: Origin, restored: int | None) -> Changed:
        planned = await asyncio.to_thread(self.plan, given, mode)
        if if_match.strip() not in ("*", planned.current_etag):
            message = f"the configuration is {planned.current_etag} now; the change was made for {if_match}"
            raise StaleError(message, fix="Read it again, and make the change to what it is now.")
        if not planned.valid:
            raise ConfigRejected("the planned configuration", planned.diagnostics)
        if planned.restart:
            fix = "Change the file, and start the router again."
            raise RestartRequiredError("; ".join(planned.restart), fix=fix)
        if not os.access(self._file.resolve().parent, os.W_OK) or not os.access(self._file, os.W_OK):
            raise ConfigError(f"{self._file} cannot be written", reason="config_unwritable", fix="Change the file where it comes from.")
        await self._activate(planned.text)
        return Changed(await asyncio.to_thread(self._written, planned.text, origin, restored), planned)

    def _written(self, text: str, origin: Origin, restored: int | None) -> Version:
        mode = self._file.stat().st_mode & 0o777
        self._ours.add(etag_of(text))
        write_private(self._file.resolve(), text.encode(), mode)
        return self._versions.record(text, origin, restored)
