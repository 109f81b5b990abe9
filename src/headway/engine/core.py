"""EngineCore: one step after another. Knows scheduler, runner, sampler and output; knows neither threads nor HTTP."""

from __future__ import annotations

import heapq
import logging
import time
from collections.abc import Callable
from collections.abc import Sequence as Many
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from headway.artifacts.tokenizer import Tokenizer
from headway.engine.model_runner import ModelRunner
from headway.engine.output_stream import RequestStream, SequenceText
from headway.engine.outputs import RequestOutput
from headway.engine.sampler import NO_TOKEN, NOTHING_ALLOWED, SampledToken, Sampler
from headway.engine.scheduler import Scheduler
from headway.engine.sequence import Request, Sequence, Status
from headway.engine.step_computation import StepComputation
from headway.engine.step_plan import StepPlan
from headway.engine.step_records import StepRecorder
from headway.errors import DeadlineError, HeadwayError, StepError
from headway.telemetry.stats import RankStats, RequestStats, StepStats
from headway.telemetry.transfer_stats import TransferStats

if TYPE_CHECKING:
    from headway.engine.planned_model import PlannedModel

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Observers:
    """Who wants to hear what happened. Called on the thread that steps."""

    on_step: Callable[[StepStats], None] = lambda stats: None
    on_request: Callable[[RequestStats], None] = lambda stats: None
    around_thread: Callable[[], AbstractContextManager[None]] = nullcontext  # entered around all work of AsyncEngine's thread
    on_end: Callable[[], None] = lambda: None  # an AsyncEngine will not step again
    on_ranks: Callable[[RankStats], None] = lambda stats: None  # something happened to the processes that compute with an AsyncEngine
    on_restarted: Callable[[], None] = lambda: None  # an AsyncEngine has loaded its model again
    on_transfer: Callable[[TransferStats], None] = lambda stats: None  # KV blocks moved between engines; called on several threads
    on_plan: Callable[[PlannedModel], None] = lambda planned: None  # before weights are loaded; what it raises refuses the model


class EngineCore:
    """Drives requests to their end. Not thread-safe: one thread adds, aborts and steps."""

    def __init__(
        self, scheduler: Scheduler, runner: ModelRunner, sampler: Sampler, tokenizer: Tokenizer, observers: Observers | None = None,
        clock: Callable[[], float] = time.monotonic,
    ):  # fmt: skip
        self.scheduler = scheduler
        self.runner = runner
        self.sampler = sampler
        self.tokenizer = tokenizer
        self.observers = observers or Observers()
        self.steps = 0
        self.recorder: StepRecorder | None = None
        self._clock = clock  # of deadlines
        self._deadlines: list[tuple[float, str]] = []  # a heap; requests may have ended since
        self._streams: dict[str, RequestStream] = {}
        self._growing: dict[str, RequestStream] = {}  # those of which not all sequences exist

    @property
    def has_work(self) -> bool:
        return self.scheduler.has_work

    @property
    def num_requests(self) -> int:
        return len(self._streams)

    def add(self, request: Request) -> None:
        """Queue a request whose sequences are made and whose parameters were checked (`admission`)."""
        if request.id in self._streams:
            raise ValueError(f"request id {request.id!r} is in use")
        stream = self._streams[request.id] = RequestStream(request, self.tokenizer)
        request.first_order = self.scheduler.reserve(request.params.n)
        for sequence in request.sequences:
            self.scheduler.add(sequence, request.first_order + sequence.index)
        if request.deadline is not None:
            heapq.heappush(self._deadlines, (request.deadline, request.id))
        if request.unborn:
            first = request.sequences[0]
            request.prompt_hashes = list(self.scheduler.kv.hashes(first.table, first.hashes, request.prompt_token_ids))
            self._growing[request.id] = stream
            self._grow()

    def _grow(self) -> None:
        """Make the next sequences of requests that want many, as many as a step may hold: a prompt of thousands of tokens is
        not copied thousands of times at once."""
        for stream in list(self._growing.values()):
            request = stream.request
            while request.unborn and stream.num_open < self.scheduler.limits.max_num_seqs and request.make_sequence:
                sequence = request.make_sequence(len(request.sequences))
                sequence.times.arrival = request.sequences[0].times.arrival
                sequence.hashes = list(request.prompt_hashes)
                request.sequences.append(sequence)
                request.unborn -= 1
                stream.add_sequence(sequence)
                self.scheduler.add(sequence, request.first_order + sequence.index)
            if not request.unborn:
                del self._growing[request.id]

    def abort(self, request_id: str, reason: str = "abort") -> RequestOutput | None:
        """End a request in whatever state it is; unknown ids are ignored, since it may have ended meanwhile."""
        stream = self._streams.get(request_id)
        if stream is None:
            return None
        stream.request.unborn = 0
        self._growing.pop(request_id, None)
        open_texts = [t for t in stream.texts if t.sequence.status is not Status.FINISHED]
        for text in open_texts:
            self._finish(text, reason)
        self.observe_idle()
        return self._report(stream, open_texts)

    def abort_all(self) -> list[RequestOutput]:
        outputs = [self.abort(request_id) for request_id in list(self._streams)]
        return [o for o in outputs if o is not None]

    def fail_all(self, failure: HeadwayError) -> None:
        """End all requests with an error, whose cause their callers hear elsewhere. The cache is not touched: there may be none any more."""
        for request_id, stream in list(self._streams.items()):
            for text in stream.texts:
                text.sequence.failure = text.sequence.failure or failure
            self.abort(request_id, "error")

    def step(self) -> list[RequestOutput]:
        """One forward pass over whatever the scheduler picked; returns what callers should hear.

        A sequence whose computation raises ends with finish_reason "error"; all others, and the engine, go on. Requests
        whose deadline has passed end first, with finish_reason "abort" and a DeadlineError. Raises RankError, after which
        nothing can be computed; all requests are still there.
        """
        late = self._end_late()
        return late + self._step() if self.has_work else late

    def _end_late(self) -> list[RequestOutput]:
        now = self._clock()
        outputs = []
        while self._deadlines and self._deadlines[0][0] <= now:
            deadline, request_id = heapq.heappop(self._deadlines)
            stream = self._streams.get(request_id)
            if stream is None or stream.request.deadline != deadline:
                continue  # it ended in time, and the id may be in use again
            failure = DeadlineError(f"the request was not done within its time, after {_tokens_so_far(stream)} generated tokens")
            for text in stream.texts:
                if text.sequence.status is not Status.FINISHED:
                    text.sequence.failure = failure
            outputs.append(self.abort(request_id))
        return [o for o in outputs if o is not None]

    def _step(self) -> list[RequestOutput]:
        if self.recorder is not None:
            self.recorder.begin()
        plan = self.scheduler.schedule()
        self.steps += 1
        if not plan.chunks:
            if self.scheduler.has_work and plan.preemptions == 0 and not self.scheduler.kv.give_back():
                raise RuntimeError(self._stuck())
            return []
        if _log.isEnabledFor(logging.DEBUG):
            _log.debug("step %d: %s", self.steps, plan)
        computed = StepComputation(self.runner, self.sampler, self.scheduler.kv.block_size).run(plan)
        for chunk in computed.done:
            chunk.sequence.num_computed += chunk.count - chunk.rejected
        if self.scheduler.drafter is not None:
            plan.drafted = self.scheduler.drafter.verified(computed.done)
        for chunk, rows in computed.scored:
            self._streams[chunk.sequence.request.id].add_prompt_logprobs(chunk, rows)
        for chunk in computed.spoilt:
            self.scheduler.restart(chunk.sequence)
        touched = [self._fail(chunk.sequence, error) for chunk, error in computed.failed]
        touched += [self._end_read(chunk.sequence) for chunk in computed.read]
        *times, generated = self._take(computed.sampled, touched)
        self._grow()
        outputs = self._outputs(touched)
        self._observe(plan, generated, times)
        if self.recorder is not None:
            self.recorder.end(plan, self.scheduler.has_work)
        for text in touched:
            if text.sequence.status is Status.FINISHED:
                text.sequence.forget_prompt()
        return outputs

    def _take(
        self, sampled: list[tuple[Sequence, SampledToken]], touched: list[SequenceText]
    ) -> tuple[list[float], list[float], int]:
        """Append the tokens, find the ends. Adds the texts that changed; returns first-token and inter-token times, and how many
        tokens there were. Tokens that a draft brought together count as one for the times."""
        now = time.monotonic()
        first: list[float] = []
        between: list[float] = []
        generated = 0
        for sequence, token in sampled:
            text = self._streams[sequence.request.id].texts[sequence.index]
            together = bool(touched) and touched[-1] is text
            if not together:
                touched.append(text)
            elif sequence.status is Status.FINISHED:
                continue
            if token.token_id == NO_TOKEN:
                if token.error is not None:
                    sequence.failure = StepError(f"the request failed: {token.error}")
                elif sequence.form is not None:
                    sequence.failure = sequence.form.dead_end(sequence.tokens, sequence.num_prompt)
                if sequence.failure is None:
                    self._finish(text, "stop", NOTHING_ALLOWED)
                    continue
                self._discard(sequence)
                self._finish(text, "error")
                continue
            times = sequence.times
            if times.first_token == 0.0:
                times.first_token = now
                first.append(now - times.arrival)
            elif not together:
                between.append(now - times.last_token)
            times.last_token = now
            generated += 1
            sequence.tokens.append(token.token_id)
            try:
                self._end_if_due(text, token)
            except Exception as error:
                _log.exception("writing the text of request %s failed; it ends with an error", sequence.request.id)
                self._fail(sequence, error)
        return first, between, generated

    def _end_read(self, sequence: Sequence) -> SequenceText:
        """The last chunk of a prompt that is read: its request has its result."""
        text = self._streams[sequence.request.id].texts[sequence.index]
        self._finish(text, "stop")
        return text

    def _end_if_due(self, text: SequenceText, token: SampledToken) -> None:
        """EOS and stop ids first, then stop strings, then the lengths. min_tokens holds ids back in the logits already."""
        sequence = text.sequence
        params = sequence.params
        is_eos = token.token_id in sequence.eos_ids and not params.ignore_eos
        is_stop = token.token_id in (params.stop_token_ids or ())
        matched = text.push(token, ends_here=is_eos or is_stop)
        if matched is not None:
            self._finish(text, "stop", matched)
        elif is_eos or is_stop:
            self._finish(text, "stop", None if is_eos else token.token_id)
        elif sequence.num_tokens >= sequence.max_tokens_total:
            self._finish(text, "length")

    def _finish(self, text: SequenceText, reason: str, stop_reason: int | str | None = None) -> None:
        sequence = text.sequence
        if sequence.status is Status.FINISHED:
            return
        self._streams[sequence.request.id].num_open -= 1
        matched = text.close() if reason != "error" else None  # what failed may be the text itself
        if matched is not None and reason in ("stop", "length"):
            reason, stop_reason = "stop", matched
        if sequence.request.hand_over is not None and sequence.index == 0 and reason in ("stop", "length"):
            sequence.request.kv_transfer_params = sequence.request.hand_over(sequence)
        self.scheduler.finish(sequence, reason, stop_reason)
        self.observers.on_request(_request_stats(sequence))

    def _discard(self, sequence: Sequence) -> None:
        """What a failed sequence left in the cache is not to be trusted: nobody may find it or read a NaN from it."""
        kv = self.scheduler.kv
        kv.retract(sequence.table.blocks)
        self.runner.clear([b for b in sequence.table.blocks if kv.pool.references(b) == 1])

    def _outputs(self, touched: list[SequenceText]) -> list[RequestOutput]:
        by_request: dict[str, list[SequenceText]] = {}
        for text in touched:
            by_request.setdefault(text.sequence.request.id, []).append(text)
        reports = [self._report(self._streams[request_id], texts) for request_id, texts in by_request.items()]
        return [r for r in reports if r is not None]

    def _report(self, stream: RequestStream, touched: list[SequenceText]) -> RequestOutput | None:
        output = stream.output(touched)
        if stream.finished:
            self._streams.pop(stream.request.id, None)
            stream.request.images = None  # pixels are counted until nobody has them
        return output

    def _fail(self, sequence: Sequence, error: Exception) -> SequenceText:
        """End one sequence, telling a caller what raised; the log has the rest."""
        self._discard(sequence)
        kind = type(error).__name__
        sequence.failure = error if isinstance(error, HeadwayError) else StepError(f"the request failed: {kind} while computing its next token")
        text = self._streams[sequence.request.id].texts[sequence.index]
        self._finish(text, "error")
        return text

    def _observe(self, plan: StepPlan, generated: int, times: Many[list[float]]) -> None:
        prompt = 0
        for chunk in plan.chunks:
            sequence = chunk.sequence
            reached = min(chunk.start + chunk.count, sequence.num_prompt)
            prompt += max(0, reached - sequence.num_prompt_counted)
            sequence.num_prompt_counted = max(reached, sequence.num_prompt_counted)
        self.observers.on_step(
            StepStats(
                running=len(self.scheduler.running),
                waiting=len(self.scheduler.waiting) + sum(s.request.unborn for s in self._growing.values()),
                kv_usage=self.scheduler.kv.pool.usage,
                scheduled_tokens=plan.num_tokens,
                prompt_tokens=prompt,
                cached_prompt_tokens=plan.new_cached_tokens,
                transferred_prompt_tokens=plan.transferred_tokens,
                generation_tokens=generated,
                prefix_queries=plan.prefix_queries,
                prefix_hits=plan.prefix_hits,
                preemptions=plan.preemptions,
                preempted_tokens=plan.preempted_tokens,
                first_token_seconds=tuple(times[0]),
                inter_token_seconds=tuple(times[1]),
                offload=self.scheduler.kv.take_offload_counts(),
                kv_events=self.scheduler.kv.take_event_counts(),
                adapters=self.scheduler.adapter_use(),
                drafts=plan.drafted,
                drafting=None if self.scheduler.drafter is None else self.scheduler.drafter.active,
            )
        )

    def observe_idle(self) -> None:
        """Bring the gauges up to date after a change that no step made."""
        self._observe(StepPlan(), 0, ([], []))

    def _stuck(self) -> str:
        head = next(iter(self.scheduler.waiting), None)
        need = self.scheduler.kv.blocks_for(head.num_tokens) if head else 0
        return f"nothing can be scheduled: the next sequence needs {need} KV blocks, {self.scheduler.kv.pool.num_free} are free"


def _tokens_so_far(stream: RequestStream) -> int:
    return sum(t.sequence.num_output for t in stream.texts)


def _request_stats(sequence: Sequence) -> RequestStats:
    times = sequence.times
    now = time.monotonic()
    scheduled = times.scheduled or now
    first = times.first_token or now
    last = times.last_token or first
    decode = last - first
    steps = sequence.num_output - 1
    siblings = sequence.request.sequences
    is_last = sequence.request.unborn == 0 and all(s.status is Status.FINISHED for s in reversed(siblings))  # looks at few
    return RequestStats(
        finish_reason=sequence.finish_reason or "abort",
        prompt_tokens=sequence.num_prompt,
        generation_tokens=sequence.num_output,
        cached_tokens=max(sequence.num_cached, 0),
        preemptions=sequence.preemptions,
        n=sequence.request.params.n,
        max_tokens=sequence.params.max_tokens,
        e2e_seconds=now - times.arrival,
        queue_seconds=scheduled - times.arrival,
        prefill_seconds=first - scheduled,
        decode_seconds=decode,
        time_per_output_token=decode / steps if steps > 0 else None,
        last_of_request=is_last,
        longest_generation_tokens=max(s.num_output for s in siblings) if is_last else 0,
        all_generation_tokens=sum(s.num_output for s in siblings) if is_last else 0,
        request_id=sequence.request.id,
        temperature=sequence.params.temperature,
        top_p=sequence.params.top_p,
        trace_headers=sequence.request.trace_headers,
    )
