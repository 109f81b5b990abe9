"""Pool: the workers of one deployment, and which of them takes a call."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from headway.router.deployments import outcome
from headway.router.deployments.card import Card
from headway.router.deployments.fit import Requirement, misfit
from headway.router.deployments.runtime_client import (
    MAX_ANSWER_BYTES,
    AnswerTooLargeError,
    Exchange,
    RuntimeUnreachableError,
)
from headway.router.deployments.specification import Specification
from headway.router.deployments.worker import Worker
from headway.router.deployments.worker_state import WorkerState
from headway.router.metrics.registry import RouterMetrics

_REPLICA_OUTCOMES = {outcome.OK: "ok", outcome.REJECTED: "rejected", outcome.OVERLOADED: "rejected", outcome.TIMEOUT: "timeout", outcome.CANCELLED: "canceled"}


class CallFailed(Exception):
    """No worker gave an answer; `outcome` says why, in the words of `outcome.py`."""

    def __init__(self, outcome: str) -> None:
        super().__init__(outcome)
        self.outcome = outcome


class Pool:
    """There is no queue: with every worker full, a call fails at once. A call that a worker could not be reached for goes to another one."""

    def __init__(
        self, specification: Specification, workers: Sequence[Worker], metrics: RouterMetrics, requirements: Sequence[Requirement] = ()
    ) -> None:
        self.specification, self.workers, self._metrics, self._requirements = specification, tuple(workers), metrics, requirements
        self._misfits: dict[str, str] = {}

    @property
    def name(self) -> str:
        return self.specification.name

    def check(self) -> None:
        """Look which workers may answer: their model must do what is required of it, and be the same everywhere."""
        self._misfits = {}
        first: Card | None = None
        for worker in self.workers:
            card = worker.card
            if not worker.state.ready or card is None:
                continue
            problem = misfit(card, self.specification, self._requirements)
            if problem is None and first is not None and first.identity != card.identity:
                problem = "the replica serves another model than the first one"
            if problem is None:
                first = first or card
            else:
                self._misfits[worker.id] = problem

    def state_of(self, worker: Worker) -> WorkerState:
        problem = self._misfits.get(worker.id)
        return WorkerState("incompatible", problem) if problem is not None and worker.state.ready else worker.state

    @property
    def card(self) -> Card | None:
        return next((worker.card for worker in self.workers if worker.card is not None and self.state_of(worker).ready), None)

    @property
    def ready(self) -> bool:
        return any(self.state_of(worker).ready for worker in self.workers)

    @property
    def state(self) -> WorkerState:
        """`degraded` when only some can answer; else that of the first that cannot."""
        states = [self.state_of(worker) for worker in self.workers]
        unready = [state for state in states if not state.ready]
        if not unready:
            return WorkerState("ready")
        return unready[0] if len(unready) == len(states) else WorkerState("degraded", unready[0].reason)

    async def call(self, path: str, body: Callable[[str], bytes], timeout: float, most: int = MAX_ANSWER_BYTES) -> Exchange:
        """The answer, whatever its status but 503. `body` gets the name that the model has where the call goes. Raises CallFailed when there is
        no answer; CancelledError goes through."""
        end = time.monotonic() + timeout
        tried: set[str] = set()
        while True:
            worker = self._choose(tried)
            tried.add(worker.id)
            try:
                return await self._exchange(worker, path, body(worker.served_name), end - time.monotonic(), most)
            except CallFailed as failed:
                if failed.outcome != outcome.UNAVAILABLE or not any(self._can_take(other, tried) for other in self.workers):
                    raise

    def _choose(self, tried: set[str]) -> Worker:
        able = [worker for worker in self.workers if self._can_take(worker, tried)]
        if not able:
            raise CallFailed(outcome.UNAVAILABLE)
        free = [worker for worker in able if not worker.full]
        if not free:
            raise CallFailed(outcome.OVERLOADED)
        return min(free, key=lambda worker: (worker.admitted_bytes, worker.assigned))

    def _can_take(self, worker: Worker, tried: set[str]) -> bool:
        return worker.available and worker.id not in tried and worker.id not in self._misfits

    async def _exchange(self, worker: Worker, path: str, body: bytes, timeout: float, most: int) -> Exchange:
        """Raises CallFailed, `unavailable` also for a runtime that says that it is not ready."""
        if timeout <= 0:
            raise CallFailed(outcome.TIMEOUT)
        worker.admit(len(body))
        self._show(worker)
        ended = outcome.FAILED
        try:
            exchange = await worker.client.post(path, body, timeout, most)
            ended = outcome.of_status(exchange.status)
            if ended == outcome.UNAVAILABLE:
                raise CallFailed(ended)
            return exchange
        except TimeoutError:
            ended = outcome.TIMEOUT
            raise CallFailed(ended) from None
        except AnswerTooLargeError:
            ended = outcome.REJECTED
            raise CallFailed(outcome.FAILED) from None
        except RuntimeUnreachableError:
            ended = outcome.UNAVAILABLE
            raise CallFailed(ended) from None
        except asyncio.CancelledError:
            ended = outcome.CANCELLED
            raise
        finally:
            worker.release(len(body), ended)
            self._show(worker)
            self._metrics.count("vsr_model_runtime_replica_requests", self.name, worker.id, _REPLICA_OUTCOMES.get(ended, "failed"))

    def _show(self, worker: Worker) -> None:
        self._metrics.set("vsr_model_runtime_replica_inflight", worker.in_flight, self.name, worker.id)
        self._metrics.set("vsr_model_runtime_replica_admitted_bytes", worker.admitted_bytes, self.name, worker.id)
