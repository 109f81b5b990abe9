"""Caller: one call to a deployment, from fields to an answer or the reason why there is none; counted, and answered from the cache if it can be."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import orjson

from headway.router.deployments import outcome
from headway.router.deployments.admission import AdmissionGate, Overloaded
from headway.router.deployments.calls import Answered, Unanswered
from headway.router.deployments.card import Card
from headway.router.deployments.parked import Surface
from headway.router.deployments.pool import CallFailed, Pool
from headway.router.deployments.result_cache import ResultCache, cache_key
from headway.router.deployments.runtime_client import MAX_ANSWER_BYTES, PHASES, Exchange
from headway.router.metrics.registry import RouterMetrics

PATHS: Mapping[Surface, str] = {
    "decisions": "/v1/decisions",
    "classify": "/v1/classify",
    "embeddings": "/v1/embeddings",
    "rerank": "/v1/rerank",
}
_MOST_INPUTS = 2048
_CACHED = frozenset({"decisions", "classify"})


class Caller:
    """The Target of one deployment. `cache` is used while it has a single worker."""

    def __init__(self, pool: Pool, cache: ResultCache, metrics: RouterMetrics) -> None:
        self.pool, self._cache, self._metrics = pool, cache, metrics
        self._answering: str | None = None  # the identity of the model
        self._gate = AdmissionGate(pool.specification.admission)

    @property
    def card(self) -> Card | None:
        return self.pool.card

    @property
    def most_inputs(self) -> int:
        card = self.pool.card
        return card.limits.get("max_inputs", _MOST_INPUTS) if card else _MOST_INPUTS

    def fixed(self, surface: Surface) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        specification = self.pool.specification
        budget = {"max_tokens": specification.max_tokens} if specification.max_tokens else {}
        if surface == "decisions":
            return {}, budget if specification.overflow == "window" else {}
        overflow = {"overflow": specification.overflow} if specification.overflow else {}
        if surface == "embeddings":
            # Vectors know no windows: where heads of the same model read windows, a text that is too long for one vector is refused.
            return {"encoding_format": "base64"}, {} if specification.overflow == "window" else {**overflow, **budget}
        return {}, {**overflow, **budget} if surface == "classify" else {}

    async def ask(self, surface: Surface, fields: Mapping[str, Any], options: Mapping[str, Any], timeout: float) -> Answered[Mapping[str, Any]] | Unanswered:
        """`fields` is the body without `model` and `options`; `timeout` in seconds, of which the runtime is told as well."""
        path = PATHS[surface]
        caches = self._cache.is_on and surface in _CACHED and len(self.pool.workers) == 1 and self.pool.ready
        key = cache_key(path, orjson.dumps([fields, options])) if caches else b""
        if caches:
            found = self._cache.get(key)
            self._metrics.count("vsr_model_runtime_result_cache", self.pool.name, "miss" if found is None else "hit")
            if found is not None:
                return Answered(found)
        began = time.perf_counter()
        ended = outcome.CANCELLED
        try:
            answer, ended, size = await self._asked(surface, path, fields, {**options, "deadline_ms": max(1.0, round(timeout * 1000, 1))}, timeout)
        finally:
            self._count_call(surface, ended, began)
        if answer is None:
            return Unanswered(ended)
        if caches and is_complete(answer):
            self._cache.put(key, answer, size)
        return Answered(answer, seconds=time.perf_counter() - began)

    async def _asked(
        self, surface: Surface, path: str, fields: Mapping[str, Any], options: Mapping[str, Any], timeout: float
    ) -> tuple[Mapping[str, Any] | None, str, int]:
        """The answer if there is one, how the call ended, the bytes of the answer."""
        rest = orjson.dumps({**fields, "options": options})
        try:
            exchange = await self.exchange(path, lambda name: b'{"model":' + orjson.dumps(name) + b"," + rest[1:], timeout)
        except CallFailed as failed:
            return None, failed.outcome, 0
        self.count_time(surface, exchange)
        ended = outcome.of_status(exchange.status)
        if ended != outcome.OK:
            return None, ended, 0
        try:
            answer = orjson.loads(exchange.body)
        except ValueError:
            return None, outcome.FAILED, 0
        return (answer, ended, len(exchange.body)) if isinstance(answer, dict) else (None, outcome.FAILED, 0)

    async def exchange(self, path: str, body: Callable[[str], bytes], timeout: float, most: int = MAX_ANSWER_BYTES) -> Exchange:
        """Through the gate of the deployment. Raises CallFailed."""
        try:
            left = await self._gate.enter(timeout)
        except Overloaded:
            raise CallFailed(outcome.OVERLOADED) from None
        except TimeoutError:
            raise CallFailed(outcome.TIMEOUT) from None
        try:
            return await self.pool.call(path, body, left, most)
        finally:
            self._gate.leave()

    async def pass_on(self, path: str, body: Callable[[str], bytes], timeout: float, most: int) -> Exchange:
        """A client's own call, counted like others; its answer is kept nowhere. Raises CallFailed."""
        began = time.perf_counter()
        ended = outcome.CANCELLED
        try:
            exchange = await self.exchange(path, body, timeout, most)
            ended = outcome.of_status(exchange.status)
            self.count_time("decisions", exchange)
            return exchange
        except CallFailed as failed:
            ended = failed.outcome
            raise
        finally:
            self._count_call("decisions", ended, began)

    def _count_call(self, surface: str, ended: str, began: float) -> None:
        self._metrics.count("vsr_model_runtime_requests", self.pool.name, ended)
        self._metrics.observe("vsr_model_runtime_request_duration_seconds", time.perf_counter() - began, self.pool.name, surface)

    def count_time(self, surface: str, exchange: Exchange) -> None:
        """Where the time of an exchange went, as far as the runtime says so."""
        total = exchange.server.get("total")
        if total is None:
            return
        self._metrics.observe("vsr_model_runtime_transport_seconds", max(0.0, exchange.seconds - total), self.pool.name, surface)
        told = {phase: exchange.server[phase] for phase in PHASES if phase in exchange.server}
        for phase, seconds in {**told, "other": max(0.0, total - sum(told.values()))}.items():
            self._metrics.observe("vsr_model_runtime_server_seconds", seconds, self.pool.name, surface, phase)

    def count_unanswered(self, reason: str) -> None:
        self._metrics.count("vsr_model_runtime_unknown_answers", self.pool.name, reason)

    def notice(self) -> None:
        """Readiness may have changed. If it has, another model may answer from now on: what was answered is forgotten."""
        card = self.pool.card
        answering = None if card is None else card.identity
        if answering != self._answering:
            self._answering = answering
            self._cache.clear()


def is_complete(answer: Mapping[str, Any]) -> bool:
    """Whether no part of an answer to questions or inputs failed."""
    states = answer.get("states")
    if isinstance(states, Mapping) and not all(isinstance(state, Mapping) and "error" not in state and is_complete(state) for state in states.values()):
        return False
    answers = answer.get("answers")
    parts = [*(answers.values() if isinstance(answers, Mapping) else ()), *(answer.get("results") or ())]
    return all(isinstance(part, Mapping) and "error" not in part for part in parts)
