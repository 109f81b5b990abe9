"""Worker: one runtime that answers for a deployment, as the router sees it: is it ready, what does it carry, what did it last say."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable

import orjson

from headway.router.deployments.card import Card, api_version, cards_of
from headway.router.deployments.outcome import SICK
from headway.router.deployments.runtime_client import Exchange, RuntimeClient, RuntimeUnreachableError
from headway.router.deployments.tempo import Tempo
from headway.router.deployments.worker_state import WorkerState, told

MAX_IN_FLIGHT = 32
_API_MAJOR = 2
_LONGEST_LIST = 200


class Worker:
    """An attached runtime; `ManagedWorker` adds a process. Everything runs on one event loop.

    `id` is stable: `r-` and 12 hex digits. `on_change` is called whenever `state` or `card` changes.
    """

    managed = False

    def __init__(self, id: str, client: RuntimeClient, served_name: str, device: str, tempo: Tempo) -> None:
        self.id, self.client, self.served_name, self.device, self.tempo = id, client, served_name, device, tempo
        self.state = WorkerState()
        self.card: Card | None = None
        self.on_change: Callable[[], None] = lambda: None
        self.in_flight = 0
        self.admitted_bytes = 0
        self.assigned = 0.0  # the moment of the last admission
        self.restarts = 0
        self._failures = 0
        self._paused_until = 0.0
        self._look = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    # -- life

    def start(self, after: asyncio.Future[None] | None = None) -> None:
        """`after` is the end of a worker with the same id, whose place this one takes."""
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(after), name=f"worker {self.id}")

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
            self._task = None
        self._set(WorkerState("stopped"))
        await self.client.close()

    @property
    def failure(self) -> str | None:
        """Why waiting for this worker is pointless; None while it may become ready. An attached runtime always may."""
        return None

    @property
    def pid(self) -> int | None:
        """Of the process that the router runs for it, while it runs."""
        return None

    async def _run(self, after: asyncio.Future[None] | None) -> None:
        if after is not None:
            await asyncio.wait({after})
        await self._live()

    async def _live(self) -> None:
        while True:
            await self.probe()
            await self._rest()

    async def _rest(self) -> None:
        """Until the next look; a failed exchange shortens it."""
        seconds = self.tempo.poll_ready if self.state.ready else self.tempo.poll_loading
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):  # wait_for of Python 3.11 can lose a cancellation that comes with the event
                await self._look.wait()
        self._look.clear()

    # -- health

    async def probe(self) -> None:
        """One look at the runtime: its health, and its card when the model is ready and the card not known."""
        try:
            health = await self.client.get("/health", self.tempo.probe_timeout)
            state = self._told(health)
            if state.ready and (self.card is None or not self.state.ready):
                self.card = None
                state = await self._fetch_card()
        except (RuntimeUnreachableError, TimeoutError) as error:
            state = WorkerState("unreachable", str(error) or "the model runtime does not answer /health")
        except ValueError:
            state = WorkerState("incompatible", "what answers /health is no model runtime")
        self._set(state)

    def _told(self, health: Exchange) -> WorkerState:
        """Raises ValueError for a body that no runtime sends."""
        body = orjson.loads(health.body)
        if not isinstance(body, dict) or not isinstance(body.get("status"), str):
            raise ValueError("no health of a runtime")
        if api_version(body)[0] != _API_MAJOR:
            return WorkerState("incompatible", f"the runtime speaks version {str(body.get('api_version'))[:40]} of the API, the router version {_API_MAJOR}")
        models = body.get("models")
        if not isinstance(models, dict):
            return told(body["status"], body.get("reason"))
        mine = models.get(self.served_name)
        if not isinstance(mine, dict):
            names = ", ".join(sorted(map(str, models)))[:_LONGEST_LIST] or "none"
            return WorkerState("missing", f"the runtime does not serve {self.served_name}; it serves {names}")
        return told(str(mine.get("status")), mine.get("reason"))

    async def _fetch_card(self) -> WorkerState:
        answer = await self.client.get("/v1/models", self.tempo.probe_timeout)
        if answer.status != 200:
            return WorkerState("unavailable", f"the runtime answers /v1/models with {answer.status}")
        card = cards_of(answer.body).get(self.served_name)
        if card is None:
            return WorkerState("missing", f"the runtime has no card of {self.served_name}")
        if not card.model_sha256:
            return WorkerState("incompatible", "the card does not identify the model (model_sha256)")
        self.card = card
        return WorkerState("ready")

    def _set(self, state: WorkerState) -> None:
        if state == self.state:
            return
        self.state = state
        if not state.ready:
            self.card = None
        self.on_change()

    # -- exchanges

    @property
    def available(self) -> bool:
        return self.state.ready and time.monotonic() >= self._paused_until

    @property
    def full(self) -> bool:
        return self.in_flight >= MAX_IN_FLIGHT

    def admit(self, size: int) -> None:
        self.in_flight += 1
        self.admitted_bytes += size
        self.assigned = time.monotonic()

    def release(self, size: int, outcome: str) -> None:
        """`outcome` of the exchange; cancelled and late ones say nothing about the runtime."""
        self.in_flight -= 1
        self.admitted_bytes -= size
        if outcome == "ok":
            self._failures = 0
            self._paused_until = 0.0
        elif outcome in SICK:
            self._failures += 1
            pause = min(self.tempo.longest_pause, self.tempo.first_pause * 2 ** (self._failures - 1))
            self._paused_until = time.monotonic() + pause
            self._look.set()
