"""Reloader: prepares configurations while the one before serves, and swaps one reference when a new one is ready."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from headway.errors import HeadwayError
from headway.router.config.document.document import Document
from headway.router.generation.activation import Activation
from headway.router.generation.document_hash import document_hash
from headway.router.generation.generation import Generation
from headway.router.generation.generations import Generations
from headway.router.metrics.registry import RouterMetrics

_log = logging.getLogger(__name__)
FILE_ONLY = "in_the_file_only"
"""Marks a record that the terminal need not show."""
Outcome = Literal["active", "unchanged", "superseded", "failed"]


@dataclass(frozen=True, slots=True)
class Applied:
    """What became of one text. `error` is set for `failed` only; `superseded` means that a later one serves."""

    outcome: Outcome
    generation: int
    error: HeadwayError | None = None


class Lifecycle(Protocol):
    """What the process does around a generation."""

    async def prepare(self, text: str, document: Document, number: int) -> Generation:
        """Compile it and start what it needs; returns when it can answer. Raises HeadwayError, and then nothing of it is left running."""
        ...

    def activated(self, generation: Generation) -> tuple[str, ...]:
        """It serves from now on. Returns what of it waits for the next start of the process."""
        ...


@dataclass(frozen=True, slots=True)
class _Candidate:
    text: str
    document: Document
    again: bool
    done: asyncio.Future[Applied]


class Reloader:
    """Texts are checked as they come; of those that are valid the latest is prepared first. When it fails, the one before it has its turn; when it
    serves, older ones are superseded. So the last text that can serve wins, however fast they come, and a bad one changes nothing."""

    def __init__(
        self, generations: Generations, metrics: RouterMetrics, environment: Mapping[str, str], lifecycle: Lifecycle,
        load: Callable[[str, Mapping[str, str]], Document],
    ) -> None:  # fmt: skip
        """`load` makes a checked document of a text; it raises HeadwayError and may run on any thread."""
        self._generations, self._metrics, self._environment, self._lifecycle, self._load = generations, metrics, environment, lifecycle, load
        self._offered = self._failed = self._number = 0
        self._pending: dict[int, _Candidate] = {}
        self._worker: asyncio.Task[None] | None = None
        self.activation = Activation()

    async def apply(self, text: str, *, again: bool = False) -> Applied:
        """Make `text` the configuration; `again` also when it serves already, for files that it names. Never raises for a text that cannot be used."""
        self._offered += 1
        mine = self._offered
        self.activation = replace(self.activation, state="pending")
        try:
            document = await asyncio.to_thread(self._load, text, self._environment)
        except HeadwayError as error:
            return self._failure(mine, error)
        except Exception as error:
            return self._defect(mine, error)
        done: asyncio.Future[Applied] = asyncio.get_running_loop().create_future()
        self._pending[mine] = _Candidate(text, document, again, done)
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        return await asyncio.shield(done)

    async def close(self) -> None:
        """Stop preparing."""
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)

    async def _work(self) -> None:
        while self._pending:
            newest = max(self._pending)
            candidate = self._pending.pop(newest)
            applied = await self._made_current(newest, candidate)
            _tell(candidate, applied)
            if applied.outcome != "failed":
                for older in [number for number in self._pending if number < newest]:
                    self._count("superseded")
                    _tell(self._pending.pop(older), Applied("superseded", self._number))

    async def _made_current(self, offer: int, candidate: _Candidate) -> Applied:
        if self._generations.is_ready and not candidate.again and document_hash(candidate.document) == self._generations.current.config_hash:
            return self._success(offer, candidate, "unchanged", self.activation.restart)
        try:
            generation = await self._lifecycle.prepare(candidate.text, candidate.document, self._number + 1)
        except HeadwayError as error:
            return self._failure(offer, error)
        except Exception as error:
            return self._defect(offer, error)
        self._number = generation.number
        self._generations.swap(generation)
        return self._success(offer, candidate, "active", self._lifecycle.activated(generation))

    def _success(self, offer: int, candidate: _Candidate, outcome: Outcome, restart: tuple[str, ...]) -> Applied:
        active = self._generations.current.config_hash
        before = self.activation
        if offer > self._failed:
            self.activation = Activation("active", active, self._number, restart=restart)
        else:  # a later text was refused already: what serves has changed, the news about that one stays
            self.activation = replace(before, active_hash=active, generation=self._number, restart=restart)
        self._count(outcome)
        _log.info("configuration generation %d %s", self._number, "serves" if outcome == "active" else "is unchanged")
        for waiting in restart:
            _log.warning("%s changes at the next start only", waiting)
        return Applied(outcome, self._number)

    def _failure(self, offer: int, error: HeadwayError) -> Applied:
        if offer > self._failed:
            self._failed = offer
            self.activation = replace(self.activation, state="failed", error=error.message)
        self._count("failed")
        kept = f"generation {self._number} goes on serving" if self._number else "nothing serves yet"
        # What stops the first start is also how the program ends, which says it in the terminal.
        _log.error("the configuration is rejected, %s: %s", kept, error.message, extra={FILE_ONLY: not self._number})
        return Applied("failed", self._number, error)

    def _defect(self, offer: int, error: Exception) -> Applied:
        _log.error("a configuration could not be prepared", exc_info=error)
        return self._failure(offer, HeadwayError(f"the configuration could not be prepared ({type(error).__name__}); the router's log has the details"))

    def _count(self, outcome: Outcome) -> None:
        self._metrics.count("vsr_config_reloads", outcome)
        self._metrics.set("vsr_config_last_reload_successful", float(self.activation.state != "failed"))
        self._metrics.set("vsr_config_generation", self._number)


def _tell(candidate: _Candidate, applied: Applied) -> None:
    if not candidate.done.done():
        candidate.done.set_result(applied)
