"""The engine's own scheduler and block pool, in a time that is reckoned instead of measured: what the simulation has to agree with."""

from __future__ import annotations

from dataclasses import dataclass, field

from headway.bench.simulation.replica_limits import ReplicaLimits
from headway.bench.simulation.request_trace import RequestTrace
from headway.bench.simulation.step_times import StepTimes, StepWork
from headway.engine.sampling_params import SamplingParams
from headway.engine.scheduler import Scheduler, SchedulerLimits
from headway.engine.sequence import Request, Sequence
from headway.engine.step_plan import StepPlan
from headway.kvcache.manager import KVCacheManager


@dataclass
class Seen:
    """Moments of first and last tokens by request, all gaps between tokens, and sums."""

    first: dict[int, float] = field(default_factory=dict)
    done: dict[int, float] = field(default_factory=dict)
    gaps: list[float] = field(default_factory=list)
    preemptions: int = 0
    cached: int = 0
    steps: int = 0


def engine(trace: RequestTrace, limits: ReplicaLimits, times: StepTimes) -> Seen:
    """One replica. Requests with the same prefix share real tokens; the rest of each prompt is its own."""
    manager = KVCacheManager(limits.num_blocks + 1, limits.block_size, caching=limits.enable_prefix_caching)
    scheduler = Scheduler(
        SchedulerLimits(
            limits.max_num_batched_tokens, limits.max_num_seqs, limits.long_prefill_token_threshold, chunked_prefill=limits.enable_chunked_prefill,
            reserve_full_prompt=limits.scheduler_reserve_full_isl, watermark=limits.watermark, prefill_interval=limits.prefill_schedule_interval,
        ),
        manager,
    )  # fmt: skip
    seen, last, now, coming = Seen(), {}, 0.0, 0
    while coming < len(trace) or scheduler.has_work:
        if not scheduler.has_work:
            now = max(now, float(trace.arrival[coming]))
        while coming < len(trace) and trace.arrival[coming] <= now:
            scheduler.add(_sequence(trace, coming, manager))
            coming += 1
        plan = scheduler.schedule()
        seen.steps += 1
        seen.preemptions += plan.preemptions
        seen.cached += plan.prefix_hits
        if not plan.chunks:
            continue
        now += times.seconds(work_of(plan))
        for chunk in plan.chunks:
            sequence = chunk.sequence
            sequence.num_computed += chunk.count
            if not chunk.samples:
                continue
            index = int(sequence.request.id)
            sequence.tokens.append(-1 - index * 100_000 - sequence.num_output)
            if index in last:
                seen.gaps.append(now - last[index])
            else:
                seen.first[index] = now
            last[index] = now
            if sequence.num_tokens >= sequence.max_tokens_total:
                scheduler.finish(sequence, "length")
                seen.done[index] = now
    return seen


def _sequence(trace: RequestTrace, index: int, manager: KVCacheManager) -> Sequence:
    length, output, prefix, shared = (int(column[index]) for column in (trace.prompt, trace.output, trace.prefix, trace.shared))
    own = range(1_000_000 + index * 10_000, 1_000_000 + index * 10_000 + length - shared)
    prompt = [*(range(prefix * 5000, prefix * 5000 + shared) if prefix >= 0 else ()), *own]
    prompt = prompt[:length] if prefix >= 0 else list(range(1_000_000 + index * 10_000, 1_000_000 + index * 10_000 + length))
    request = Request(str(index), prompt, SamplingParams(max_tokens=output))
    sequence = Sequence(request, 0, request.params, list(prompt), manager.new_table(None), frozenset(), length + output, num_prompt=length)
    request.sequences.append(sequence)
    return sequence


def work_of(plan: StepPlan) -> StepWork:
    many = [chunk for chunk in plan.chunks if chunk.count > 1]
    single = [chunk for chunk in plan.chunks if chunk.count == 1]
    return StepWork(
        sum(chunk.count for chunk in many), len(many), sum(position + 1 for chunk in many for position in range(chunk.start, chunk.start + chunk.count)),
        len(single), sum(chunk.start + 1 for chunk in single), sum(chunk.samples for chunk in plan.chunks),
    )  # fmt: skip
