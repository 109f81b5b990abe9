"""RuntimeStage: the calls of one stage of one request, joined. All questions for one deployment leave in one call, as soon as every participant
waits or has left, never on a timer; other calls that differ only in their inputs leave together then, or a moment after the first of them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

from headway.router.deployments import outcome
from headway.router.deployments.calls import Unanswered
from headway.router.deployments.parked import Parked, ParkedInputs, ParkedQuestion
from headway.router.deployments.participant import RuntimeParticipant
from headway.router.deployments.questions import Asked, QuestionBody
from headway.router.deployments.target import Target
from headway.router.metrics.registry import RouterMetrics
from headway.router.request.deadline import Deadline
from headway.telemetry.defect import describe_defect

_log = logging.getLogger(__name__)


class RuntimeStage:
    """For one event loop. `targets` by name; `join_wait` in seconds."""

    def __init__(self, targets: Mapping[str, Target], metrics: RouterMetrics, deadline: Deadline, join_wait: float) -> None:
        self._targets, self._metrics, self._deadline, self._join_wait = targets, metrics, deadline, join_wait
        self._loop = asyncio.get_running_loop()
        self._working: set[RuntimeParticipant] = set()  # those that have not left and wait for nothing: they may still ask
        self._questions: dict[ParkedQuestion, None] = {}  # in order
        self._others: dict[ParkedInputs, None] = {}
        self._sending: set[asyncio.Task[None]] = set()
        self._asked: set[str] = set()  # deployments that have been asked questions
        self._will_flush = False
        self._timer: asyncio.TimerHandle | None = None

    def join(self) -> RuntimeParticipant:
        participant = RuntimeParticipant(self)
        self._working.add(participant)
        return participant

    def leave(self, participant: RuntimeParticipant) -> None:
        for item in list(participant.waiting):
            self.answer(item, item.refused(outcome.CANCELLED))
        self._working.discard(participant)
        self._consider()

    def until(self, timeout: float | None) -> float:
        """When a caller with its own timeout stops waiting, on the clock of the loop."""
        left = self._deadline.left if timeout is None else min(timeout, self._deadline.left)
        return self._loop.time() + left

    async def park(self, item: ParkedQuestion | ParkedInputs) -> Any:
        """What the item is answered with. When nobody waits for any item of a call any more, the call is cancelled."""
        if item.deployment not in self._targets:
            return item.refused(outcome.UNKNOWN_DEPLOYMENT)
        item.participant.waiting.add(item)
        self._working.discard(item.participant)
        self._expire_at(item, item.until)
        if isinstance(item, ParkedQuestion):
            self._questions[item] = None
        else:
            self._others[item] = None
            if self._timer is None:
                self._timer = self._loop.call_later(self._join_wait, self._flush_others)
        self._consider()
        try:
            return await item.future
        finally:
            self.answer(item, item.refused(outcome.CANCELLED))  # of one that was cancelled; the answer of another is there

    def answer(self, item: Parked, answer: Any) -> None:
        """The first answer counts. The participant works again from now on, not only when it is resumed."""
        waiting = item.participant.waiting
        if item not in waiting:
            return
        waiting.discard(item)
        if not waiting:
            self._working.add(item.participant)
        if item.timer is not None:
            item.timer.cancel()
        self._questions.pop(item, None)  # type: ignore[call-overload]
        self._others.pop(item, None)  # type: ignore[call-overload]
        for one in answer if isinstance(answer, list) else [answer]:
            if isinstance(one, Unanswered) and one.reason != outcome.CANCELLED:
                self._targets[item.deployment].count_unanswered(one.reason)
        if not item.future.done():
            item.future.set_result(answer)

    def _expire_at(self, item: Parked, moment: float) -> None:
        if item.timer is not None:
            item.timer.cancel()
        item.timer = self._loop.call_at(moment, lambda: self.answer(item, item.refused(outcome.TIMEOUT)))

    # -- sending

    def _consider(self) -> None:
        """Flush after everything that is ready to run has run: it may park more."""
        if not self._will_flush and not self._working and (self._questions or self._others):
            self._will_flush = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._will_flush = False
        if self._working:
            return
        self._flush_others()
        questions, self._questions = list(self._questions), {}
        groups: dict[str, list[ParkedQuestion]] = {}
        for item in questions:
            groups.setdefault(item.deployment, []).append(item)
        now = self._loop.time()
        for deployment, group in groups.items():
            self._metrics.count("vsr_model_runtime_stage_decision_calls", deployment, "later" if deployment in self._asked else "first")
            self._asked.add(deployment)
            latest = max(item.until for item in group)
            for item in group:
                self._metrics.observe("vsr_model_runtime_bundle_question_wait_seconds", now - item.since)
                self._expire_at(item, latest)  # once a call is shared, each waits as long as the most patient
            self._send(_ask(self, self._targets[deployment], group, latest - now), group)
        self._depart(len(groups), questions)

    def _flush_others(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        others, self._others = list(self._others), {}
        groups: dict[Any, list[ParkedInputs]] = {}
        for item in others:
            groups.setdefault((item.deployment, item.surface, item.key), []).append(item)
        now = self._loop.time()
        for group in groups.values():
            target = self._targets[group[0].deployment]
            self._send(_run_inputs(self, target, group, max(item.until for item in group) - now), group)
        self._depart(len(groups), others)

    def _depart(self, calls: int, items: Sequence[Parked]) -> None:
        if calls:
            self._metrics.observe("vsr_model_runtime_bundle_tasks", calls)
            self._metrics.observe("vsr_model_runtime_bundle_wait_seconds", self._loop.time() - min(item.since for item in items))

    def _send(self, call: Coroutine[Any, Any, None], group: Sequence[Parked]) -> None:
        task = self._loop.create_task(_guarded(self, call, group))
        self._sending.add(task)
        task.add_done_callback(self._sending.discard)

        waited_for = len(group)

        def done(_: object) -> None:
            nonlocal waited_for
            waited_for -= 1
            if not waited_for:
                task.cancel()  # nobody waits any more; of no effect on a call that has answered

        for item in group:
            item.future.add_done_callback(done)


async def _ask(stage: RuntimeStage, target: Target, group: Sequence[ParkedQuestion], timeout: float) -> None:
    card = target.card
    if card is None:
        for item in group:
            stage.answer(item, item.refused(outcome.UNAVAILABLE))
        return
    if not card.joins_states:
        parts = [[item for item in group if item.state == state] for state in _distinct([item.state for item in group])]
        if len(parts) > 1:
            await asyncio.gather(*(_ask(stage, target, part, timeout) for part in parts))
            return
    body = QuestionBody([Asked(item.question, item.state, item.full) for item in group], card)
    fields, options = target.fixed("decisions")
    whole = await target.ask("decisions", {**body.fields, **fields}, options, timeout)
    answers: Sequence[Any] = [whole for _ in group] if isinstance(whole, Unanswered) else body.answers(whole.value, whole.seconds)
    for item, answer in zip(group, answers, strict=True):
        stage.answer(item, answer)


def _distinct(states: Sequence[Any]) -> list[Any]:
    found: list[Any] = []
    for state in states:
        if state not in found:
            found.append(state)
    return found


async def _run_inputs(stage: RuntimeStage, target: Target, group: Sequence[ParkedInputs], timeout: float) -> None:
    """All inputs of the group, in calls of at most as many as the target takes; those of a call that fails fail together."""
    first = group[0]
    every = [given for item in group for given in item.inputs]
    fields, options = target.fixed(first.surface)
    most = target.most_inputs
    chunks = [every[start : start + most] for start in range(0, len(every), most)]
    name = "documents" if first.surface == "rerank" else "input"
    bodies = ({**first.fields, **fields, name: chunk} for chunk in chunks)
    answers = await asyncio.gather(*(target.ask(first.surface, body, options, timeout) for body in bodies))
    read: list[Any] = []
    for chunk, answer in zip(chunks, answers, strict=True):
        read += [answer for _ in chunk] if isinstance(answer, Unanswered) else first.read(answer.value, chunk, answer.seconds)
    start = 0
    for item in group:
        end = start + len(item.inputs)
        stage.answer(item, item.combined(read[start:end]))
        start = end


async def _guarded(stage: RuntimeStage, call: Coroutine[Any, Any, None], group: Sequence[Parked]) -> None:
    """A defect of ours costs the items of this call, never more."""
    try:
        await call
    except Exception as error:
        _log.error("a call to deployment %s failed: %s", group[0].deployment, describe_defect(error))
        for item in group:
            stage.answer(item, item.refused(outcome.FAILED))
