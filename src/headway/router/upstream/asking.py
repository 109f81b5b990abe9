"""Asking one provider model: a backend from the pool, the tries, and what each of them says about the backend."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from yarl import URL

from headway.errors import DeadlineError
from headway.router.metrics.registry import RouterMetrics
from headway.router.prefixes.preference import Preference
from headway.router.request.deadline import Deadline
from headway.router.upstream.activity import ModelActivity
from headway.router.upstream.backend import Backend
from headway.router.upstream.connections import Connections
from headway.router.upstream.errors import BackendBusyError, NoBackendError, UpstreamError, UpstreamTimeoutError
from headway.router.upstream.exchange import Exchange, Times, TryError, open_exchange
from headway.router.upstream.health import BackendState, BackendStates, note_failure, note_success
from headway.router.upstream.places import leave_place, take_place
from headway.router.upstream.pool import Pool
from headway.router.upstream.prefills import Prefills
from headway.router.upstream.reliability import Reliability
from headway.router.upstream.retrying import Load, Repeats, repeats, wait_before
from headway.router.upstream.targets import Target

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Question:
    """What is sent, whichever backend gets it. `payload` encodes the body for a backend, `url` is where it goes."""

    payload: Callable[[Backend], bytes]
    headers: Callable[[Backend], Mapping[str, str]]
    url: Callable[[Backend], URL] = lambda backend: backend.chat
    deadline: Deadline | None = None
    attempts: list[str] = field(default_factory=list)
    preference: Preference | None = None


class Asking:
    """The backends of one target. `reliability` of a decision may replace that of the target for one question."""

    def __init__(self, target: Target, connections: Connections, states: BackendStates, activity: ModelActivity, metrics: RouterMetrics):
        self.target = target
        self.pool = Pool(target.backends, states, target.reliability.least_request)
        self._load = Load()
        self._connections = connections
        self._activity = activity
        self._metrics = metrics
        self._prefills = Prefills(target.name, target.prefills, connections, states, metrics) if target.prefills else None

    async def ask(self, question: Question, reliability: Reliability | None = None) -> Exchange:
        """The answer of a backend, with whatever status it has after the tries that it may have. The caller reads or closes it.

        Raises UpstreamError, UpstreamTimeoutError, BackendBusyError, NoBackendError; DeadlineError when the caller's own time is over.
        """
        reliability = reliability or self.target.reliability
        answered: bool | None = None
        try:
            with Repeats(self._load) as repeats_made:
                exchange = await self._tries(question, reliability, repeats_made)
            answered = exchange.status < 500
            return exchange
        except BackendBusyError:  # says nothing about how well the model answers
            raise
        except UpstreamError:
            answered = False
            raise
        finally:
            if answered is not None:
                self._activity.note(self.target.name, answered)

    async def _tries(self, question: Question, reliability: Reliability, repeats_made: Repeats) -> Exchange:
        end = time.monotonic() + reliability.total if reliability.total else float("inf")
        tried: list[str] = []
        used = 0
        while True:
            picked = self.pool.pick(tried, question.preference)
            if picked is None:
                raise NoBackendError(
                    f'model "{self.target.name}" has no backend that takes requests',
                    fix="Give it backend_refs with a weight.",
                )
            backend, state = picked
            if question.preference is not None and not tried:
                self._metrics.count("headway_prefix_placements", self.target.name, question.preference.outcome(backend.alias))
            tried.append(backend.alias)
            failure: TryError | int
            headers: Mapping[str, str] = {}
            exchange: Exchange | None = None
            try:
                exchange = await self._one_try(question, reliability, backend, state, end)
                if exchange.status < 500 and exchange.status != 429 and exchange.status not in reliability.statuses:
                    self._ended(question, backend, "ok" if exchange.status < 400 else f"status_{exchange.status}")
                    self._note_success(backend, state)
                    return exchange
                failure, headers = exchange.status, exchange.headers
                self._ended(question, backend, f"status_{failure}")
            except TryError as error:
                failure = error
                self._ended(question, backend, error.outcome)
            if _is_the_backends(failure, question):
                self._note_failure(backend, state, reliability, failure)
            untried = self.pool.untried(tried)
            wait = None
            if repeats(reliability, failure, used, untried) and repeats_made.allowed(reliability):
                wait = wait_before(reliability, failure, used, headers, untried)
            if wait is None or time.monotonic() + wait >= _end(question, end):
                if exchange is not None:
                    return exchange
                raise _error(backend, failure, question)
            if exchange is not None:
                exchange.close()
            repeats_made.begin()
            used += 1
            if wait:
                await asyncio.sleep(wait)

    def _note_success(self, backend: Backend, state: BackendState) -> None:
        note_success(state)
        if state.failing:
            state.failing = False
            _log.info("backend %s answers again", backend.alias)

    def _note_failure(self, backend: Backend, state: BackendState, limits: Reliability, failure: TryError | int) -> None:
        if not state.failing:
            state.failing = True
            said = f"answered with status {failure}" if isinstance(failure, int) else _SENTENCES[failure.outcome]
            _log.warning("backend %s %s; further failures are only counted, in vsr_upstream_attempts", backend.alias, said)
        if note_failure(state, self.pool.states, limits.consecutive_5xx, limits.ejection_time, limits.max_ejection_percent):
            self._metrics.count("vsr_upstream_ejections", self.target.name, backend.alias)

    async def _one_try(
        self, question: Question, reliability: Reliability, backend: Backend, state: BackendState, end: float
    ) -> Exchange:
        await self._place(reliability, backend, state, _left(question, end))
        try:
            left = _left(question, end)
        except TryError:
            leave_place(state)
            raise
        head = min(each for each in (reliability.first_byte, reliability.per_try, left) if each is not None)
        connect = reliability.connect if head >= reliability.connect else head
        until = asyncio.get_running_loop().time() + left if left < float("inf") else None
        self._metrics.set("llm_model_inflight_requests", self._activity.enter(self.target.name), self.target.name)
        done = False
        try:
            payload = question.payload(backend)
            if self._prefills is not None:
                payload = await self._prefills.handed_over(question, payload, reliability, left)
            exchange = await open_exchange(
                self._connections,
                backend,
                question.url(backend),
                payload,
                question.headers(backend),
                Times(connect, None if head == float("inf") else head, reliability.idle, until),
            )
            exchange.on_end = lambda: self._leave(state)
            done = True
            return exchange
        finally:
            if not done:
                self._leave(state)

    async def _place(self, reliability: Reliability, backend: Backend, state: BackendState, left: float) -> None:
        waits = not state.has_place
        if waits:
            self._metrics.add("vsr_upstream_waiting_requests", 1, self.target.name, backend.alias)
        try:
            await take_place(state, reliability.max_in_flight, reliability.max_waiting, min(left, reliability.max_wait))
        finally:
            if waits:
                self._metrics.add("vsr_upstream_waiting_requests", -1, self.target.name, backend.alias)

    def _leave(self, state: BackendState) -> None:
        leave_place(state)
        self._metrics.set("llm_model_inflight_requests", self._activity.leave(self.target.name), self.target.name)

    def _ended(self, question: Question, backend: Backend, outcome: str) -> None:
        question.attempts.append(f"{backend.alias}: {outcome}")
        self._metrics.count("vsr_upstream_attempts", self.target.name, backend.alias, outcome)


def _is_the_backends(failure: TryError | int, question: Question) -> bool:
    """Whether the failure speaks against the backend: not when it is busy, and not when the caller had no time left, or callers could take it out."""
    if isinstance(failure, int):
        return failure >= 500
    return not failure.busy and not (failure.timed_out and question.deadline is not None and question.deadline.left <= 0)


def _end(question: Question, end: float) -> float:
    return end if question.deadline is None else min(end, question.deadline.at)


def _left(question: Question, end: float) -> float:
    """Seconds for another try. Raises TryError when there are none."""
    left = _end(question, end) - time.monotonic()
    if left <= 0:
        raise TryError("total_timeout")
    return left


def _error(backend: Backend, failure: TryError | int, question: Question) -> Exception:
    assert isinstance(failure, TryError)
    if failure.timed_out:
        if question.deadline is not None and question.deadline.left <= 0:
            return DeadlineError("the time that the request allows was over before a backend answered")
        if not failure.busy:
            return UpstreamTimeoutError(f'backend "{backend.alias}" {_SENTENCES[failure.outcome]}')
    if failure.busy:
        return BackendBusyError(f'backend "{backend.alias}" {_SENTENCES[failure.outcome]}', fix="Try again later, or see max_in_flight in docs/routing.md.")
    return UpstreamError(f'backend "{backend.alias}" {_SENTENCES[failure.outcome]}')


_SENTENCES: Mapping[str, str] = {
    "queue_full": "has as many requests under way as it may have, and as many wait as may",
    "queue_timeout": "had no place for this request in time: it has as many under way as it may have",
    "connect_failed": "cannot be reached",
    "connect_timeout": "did not accept a connection in time",
    "first_byte_timeout": "did not begin to answer in time",
    "total_timeout": "did not answer in the time that all tries have",
    "idle_timeout": "stopped sending in the middle of its answer",
    "closed": "closed the connection before it answered",
    "broken": "broke off in the middle of its answer",
    "too_large": "sent an answer that is too large",
    "bad_answer": "sent something that is no HTTP answer",
    "bad_body": "sent an answer that is not valid JSON",
    "bad_shape": "sent an answer of another kind than it was asked for",
    "no_end": "ended its stream without the final event",
    "no_answer": "sent an answer in which nothing is said",
    "reported": "reported an error in its answer",
}


def broken_answer(alias: str, outcome: str, told: str | None = None) -> UpstreamError:
    """The error of an answer that failed after its head; `told` is the backend's own word for it."""
    kind = UpstreamTimeoutError if outcome.endswith("timeout") else UpstreamError
    return kind(f'backend "{alias}" {_SENTENCES[outcome]}' + (f": {told}" if told else ""))
