"""Extraction: all signals of a recipe that something uses, observed for one request."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeGuard, TypeVar, cast

from headway.router.deployments.calls import Participant, Stages
from headway.router.observation import Observation, Observations
from headway.router.request.deadline import Deadline
from headway.router.request.view import RequestView
from headway.router.signals.asking.composers import Composers
from headway.router.signals.kind import ModelSignal, Recipe, SignalKind, TextSignal
from headway.router.signals.table import SIGNAL_KINDS
from headway.router.signals.usage import used_rules
from headway.router.truth import Truth
from headway.telemetry.defect import describe_defect

_log = logging.getLogger(__name__)
_WITHOUT_DEADLINE = 45.0  # seconds for model signals when the caller named no deadline
_KEPT_BACK = 0.1  # of the time that is left, for the stages after the signals; at least a second where there is one
_INLINE = 32_768  # characters of a request: longer ones would hold up others
_GRACE = 0.25  # seconds: signals answer their own deadline; only what overruns it by this is cut off


_Seconds: TypeAlias = list[tuple[str, float]]
_Signal = TypeVar("_Signal", TextSignal, ModelSignal)


@dataclass(frozen=True, slots=True)
class _Owing(Generic[_Signal]):
    """A signal with the rules whose observations it owes."""

    kind: SignalKind
    rules: Sequence[Any]
    signal: _Signal


class SignalExtraction:
    """Text signals run at once on the event loop, of long texts in a thread; then all model signals run concurrently as one stage, within one
    deadline.

    A signal that raises or overruns costs only its own rules: they count as unanswered.
    """

    def __init__(self, recipe: Recipe, stages: Stages, kinds: Sequence[SignalKind] = SIGNAL_KINDS) -> None:
        """Raises ConfigError for a rule that cannot be compiled."""
        self._stages = stages
        self._limit = _signal_timeout(recipe)
        self._texts: list[_Owing[TextSignal]] = []
        self._asking: list[_Owing[ModelSignal]] = []
        self._composers = Composers(recipe)
        for kind, rules in used_rules(recipe, kinds):
            for signal in kind.compile(rules, recipe):
                if _asks(signal):
                    self._asking.append(_Owing(kind, rules, signal))
                else:
                    self._texts.append(_Owing(kind, rules, cast(TextSignal, signal)))

    def deployments(self) -> frozenset[str]:
        """Every deployment that some signal asks."""
        return frozenset().union(*(asking.signal.deployments() for asking in self._asking))

    async def observe(self, view: RequestView, deadline: Deadline) -> Observations:
        observations = Observations()
        if self._texts:
            is_long = sum(map(len, view.all_texts)) > _INLINE
            found = await asyncio.to_thread(self._read, view, observations.seconds) if is_long else self._read(view, observations.seconds)
            observations.add(found)
        if self._asking:
            for answered in await self._ask(view, signal_deadline(deadline, self._limit), observations.seconds):
                observations.add(answered)
        self._composers.apply(observations)
        return observations

    def _read(self, view: RequestView, seconds: _Seconds) -> list[Observation]:
        observations: list[Observation] = []
        for owing in self._texts:
            began = time.perf_counter()
            try:
                observations += owing.signal.observe(view)
            except Exception as error:
                observations += _failed(owing, error)
            seconds.append((owing.kind.type, time.perf_counter() - began))
        return observations

    async def _ask(self, view: RequestView, deadline: Deadline, seconds: _Seconds) -> Sequence[Sequence[Observation]]:
        stage = self._stages.open(deadline)
        joined = [(asking, stage.join()) for asking in self._asking]
        return await asyncio.gather(*(_observed(asking, calls, view, deadline, seconds) for asking, calls in joined))


def compile_extraction(recipe: Recipe, stages: Stages) -> SignalExtraction:
    """Raises ConfigError for a rule that cannot be compiled."""
    return SignalExtraction(recipe, stages)


def _asks(signal: TextSignal | ModelSignal) -> TypeGuard[ModelSignal]:
    return asyncio.iscoroutinefunction(signal.observe)


async def _observed(
    asking: _Owing[ModelSignal], calls: Participant, view: RequestView, deadline: Deadline, seconds: _Seconds
) -> Sequence[Observation]:
    began = time.perf_counter()
    try:
        async with asyncio.timeout(deadline.left + _GRACE):  # wait_for of Python 3.11 can lose a cancellation that comes with the result
            return await asking.signal.observe(view, calls)
    except TimeoutError:
        return _unanswered(asking, "timeout")
    except Exception as error:
        return _failed(asking, error)
    finally:
        calls.leave()
        seconds.append((asking.kind.type, time.perf_counter() - began))


def _failed(owing: _Owing[TextSignal] | _Owing[ModelSignal], error: Exception) -> Sequence[Observation]:
    """One signal's defect never harms the others, nor the request."""
    _log.error("signal %s failed: %s", owing.kind.type, describe_defect(error))
    return _unanswered(owing, "evaluation_failed")


def _unanswered(owing: _Owing[TextSignal] | _Owing[ModelSignal], why: str) -> Sequence[Observation]:
    kind, reason = owing.kind, f"{owing.kind.type}_{why}"
    found: list[Observation] = []
    for rule in owing.rules:
        if kind.unanswered is not None:
            found.extend(kind.unanswered(rule, reason))
        else:
            found.extend(Observation(kind.type, name, Truth.UNKNOWN, reason=reason) for name in kind.names(rule))
    return found


def signal_deadline(request: Deadline, limit: float | None) -> Deadline:
    """Until when model signals may answer: `limit` seconds if the configuration names them, else a tenth before the caller's visible deadline
    (a second before it, if that is earlier and no more than half of the time), else 45 seconds; never later than the request's own."""
    if limit is not None:
        return request.sooner(limit)
    if not request.visible:
        return request.sooner(_WITHOUT_DEADLINE)
    left = request.left
    return request.sooner(left - min(max(left * _KEPT_BACK, 1.0), left / 2))


def _signal_timeout(recipe: Recipe) -> float | None:
    settings = recipe.document.global_
    catalog = settings.model_catalog if settings else None
    milliseconds = catalog.signal_timeout_ms if catalog else None
    return milliseconds / 1000 if milliseconds else None
