"""EngineCore: one step after another. Knows scheduler, runner, sampler and output; knows neither threads nor HTTP."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from headway.artifacts.tokenizer import Tokenizer
from headway.engine.model_runner import ModelRunner
from headway.engine.output_stream import RequestStream, SequenceText
from headway.engine.outputs import RequestOutput
from headway.engine.sampler import NO_TOKEN, SampledToken, Sampler
from headway.engine.scheduler import Scheduler
from headway.engine.sequence import Request, Sequence, Status
from headway.engine.step_plan import StepPlan
from headway.telemetry.stats import RequestStats, StepStats

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Observers:
    """Who wants to hear what happened. Called on the thread that steps."""

    on_step: Callable[[StepStats], None] = lambda stats: None
    on_request: Callable[[RequestStats], None] = lambda stats: None
    around_thread: Callable[[], AbstractContextManager[None]] = nullcontext  # entered around all work of AsyncEngine's thread


class EngineCore:
    """Drives requests to their end. Not thread-safe: one thread adds, aborts and steps."""

    def __init__(
        self, scheduler: Scheduler, runner: ModelRunner, sampler: Sampler, tokenizer: Tokenizer, observers: Observers | None = None
    ):
        self.scheduler = scheduler
        self.runner = runner
        self.sampler = sampler
        self.tokenizer = tokenizer
        self.observers = observers or Observers()
        self.steps = 0
        self._streams: dict[str, RequestStream] = {}

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
        self._streams[request.id] = RequestStream(request, self.tokenizer)
        for sequence in request.sequences:
            self.scheduler.add(sequence)

    def abort(self, request_id: str) -> RequestOutput | None:
        """End a request in whatever state it is; unknown ids are ignored, since it may have ended meanwhile."""
        stream = self._streams.get(request_id)
        if stream is None:
            return None
        open_texts = [t for t in stream.texts if t.sequence.status is not Status.FINISHED]
        for text in open_texts:
            self._finish(text, "abort")
        self._observe_idle()
        return self._report(stream, open_texts)

    def abort_all(self) -> list[RequestOutput]:
        outputs = [self.abort(request_id) for request_id in list(self._streams)]
        return [o for o in outputs if o is not None]

    def step(self) -> list[RequestOutput]:
        """One forward pass over whatever the scheduler picked; returns what callers should hear.

        If the pass raises, the sequences in it end with finish_reason "error"; all others, and the engine, go on.
        """
        plan = self.scheduler.schedule()
        self.steps += 1
        if not plan.chunks:
            if self.scheduler.has_work and plan.preemptions == 0:
                raise RuntimeError(self._stuck())
            return []
        if _log.isEnabledFor(logging.DEBUG):
            _log.debug("step %d: %s", self.steps, plan)
        try:
            result = self.runner.execute(plan)
            for chunk, rows in result.prompt_logprobs:
                self._streams[chunk.sequence.request.id].add_prompt_logprobs(chunk, rows)
            sampled = self.sampler.sample(result.logits, [c.sequence for c in result.sampling]) if result.sampling else []
        except Exception as error:
            return self._fail(plan, error)
        for chunk in plan.chunks:
            chunk.sequence.num_computed += chunk.count
        touched, times = self._take(list(zip((c.sequence for c in result.sampling), sampled, strict=True)))
        outputs = self._outputs(touched)
        self._observe(plan, len(sampled), times)
        return outputs

    def _take(self, sampled: list[tuple[Sequence, SampledToken]]) -> tuple[list[SequenceText], tuple[list[float], list[float]]]:
        """Append the tokens, find the ends. Returns the texts that changed, and first-token and inter-token times."""
        now = time.monotonic()
        touched = []
        first: list[float] = []
        between: list[float] = []
        for sequence, token in sampled:
            text = self._streams[sequence.request.id].texts[sequence.index]
            touched.append(text)
            if token.token_id == NO_TOKEN:
                sequence.error = token.error
                self._discard(sequence)
                self._finish(text, "error")
                continue
            times = sequence.times
            if times.first_token == 0.0:
                times.first_token = now
                first.append(now - times.arrival)
            else:
                between.append(now - times.last_token)
            times.last_token = now
            sequence.tokens.append(token.token_id)
            self._end_if_due(text, token)
        return touched, (first, between)

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
        matched = text.close()
        if matched is not None and reason in ("stop", "length"):
            reason, stop_reason = "stop", matched
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
        if all(t.sequence.status is Status.FINISHED for t in stream.texts):
            self._streams.pop(stream.request.id, None)
        return output

    def _fail(self, plan: StepPlan, error: Exception) -> list[RequestOutput]:
        _log.exception("a step failed; its %d sequences end with an error, the engine goes on", len(plan.chunks))
        touched = []
        for chunk in plan.chunks:
            sequence = chunk.sequence
            self._discard(sequence)
            sequence.error = f"{type(error).__name__} in the forward pass"
            text = self._streams[sequence.request.id].texts[sequence.index]
            self._finish(text, "error")
            touched.append(text)
        self._observe(plan, 0, ([], []))
        return self._outputs(touched)

    def _observe(self, plan: StepPlan, generated: int, times: tuple[list[float], list[float]]) -> None:
        prompt = 0
        for chunk in plan.chunks:
            sequence = chunk.sequence
            reached = min(chunk.start + chunk.count, sequence.num_prompt)
            prompt += max(0, reached - sequence.num_prompt_counted)
            sequence.num_prompt_counted = max(reached, sequence.num_prompt_counted)
        self.observers.on_step(
            StepStats(
                running=len(self.scheduler.running),
                waiting=len(self.scheduler.waiting),
                kv_usage=self.scheduler.kv.pool.usage,
                scheduled_tokens=plan.num_tokens,
                prompt_tokens=prompt,
                cached_prompt_tokens=plan.new_cached_tokens,
                generation_tokens=generated,
                prefix_queries=plan.prefix_queries,
                prefix_hits=plan.prefix_hits,
                preemptions=plan.preemptions,
                preempted_tokens=plan.preempted_tokens,
                first_token_seconds=tuple(times[0]),
                inter_token_seconds=tuple(times[1]),
            )
        )

    def _observe_idle(self) -> None:
        """Bring the gauges up to date after a change that no step made."""
        self._observe(StepPlan(), 0, ([], []))

    def _stuck(self) -> str:
        head = next(iter(self.scheduler.waiting), None)
        need = self.scheduler.kv.blocks_for(head.num_tokens) if head else 0
        return f"nothing can be scheduled: the next sequence needs {need} KV blocks, {self.scheduler.kv.pool.num_free} are free"


def _request_stats(sequence: Sequence) -> RequestStats:
    times = sequence.times
    now = time.monotonic()
    scheduled = times.scheduled or now
    first = times.first_token or now
    last = times.last_token or first
    decode = last - first
    steps = sequence.num_output - 1
    siblings = sequence.request.sequences
    is_last = all(s.status is Status.FINISHED for s in reversed(siblings))  # they tend to end in order: looks at few
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
