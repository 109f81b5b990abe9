"""What each layout reaches for a traffic, and which one to take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from headway.capacity.byte_text import byte_text
from headway.capacity.cluster.description import Cluster
from headway.capacity.cluster.layout import Layout, RankMemory, layouts, obstacle, rank_memory
from headway.capacity.cluster.step_cost import Replica, StepCost
from headway.capacity.model_shape import ModelShape
from headway.capacity.on_device import Placement

STEP_TOKENS: Final = 2048
ROWS: Final = 256  # sequences of one step


@dataclass(frozen=True, slots=True)
class Demand:
    """Requests of `prompt` and `output` tokens; promises in seconds, None = none."""

    prompt: int
    output: int
    ttft: float | None = None
    itl: float | None = None


@dataclass(frozen=True, slots=True)
class Reached:
    """Of one layout. `batch`: sequences in each of the `pp` batches that are under way in a replica. Seconds and per second.

    `itl` is the mean gap under full load: each of a request's steps shares its stage with the prompts that come meanwhile. `ttft` is that of a
    prompt that need not queue. `bubble`: share of a lone prompt's time in which a stage waits. `limited_by`: memory, itl, rows, or what cannot be.
    """

    layout: Layout
    memory: RankMemory
    context: int
    obstacle: str | None
    batch: int = 0
    limited_by: str = ""
    decode: StepCost | None = None
    prefill: StepCost | None = None
    chunks: int = 0
    ttft: float = 0.0
    itl: float = 0.0
    requests_per_second: float = 0.0
    output_tokens_per_second: float = 0.0
    bubble: float = 0.0


def reached(shape: ModelShape, cluster: Cluster, layout: Layout, placement: Placement, demand: Demand) -> Reached:
    """The largest batch that memory and promises allow, and what comes of it."""
    context = demand.prompt + demand.output
    memory = rank_memory(shape, layout, placement, cluster.device.memory, context, STEP_TOKENS, ROWS)
    if (found := obstacle(shape, layout)) is not None:
        return Reached(layout, memory, context, found)
    fits = memory.sequences // layout.pp  # every batch under way has its keys and values on every stage
    if fits < 1:
        need = memory.weights + memory.fixed + layout.pp * memory.sequence
        return Reached(layout, memory, context, f"needs {byte_text(need)} on each device, which has {byte_text(memory.budget)} for it")
    replica = Replica(shape, cluster, layout, placement)
    most = min(fits, ROWS)
    batch = _largest_batch(replica, layout, memory, demand, most)
    if batch == 0:
        one = _at(replica, layout, memory, demand, 1, "")
        promise = f"gap of {one.itl * 1e3:.1f} ms" if demand.itl is not None and one.itl > demand.itl else f"first token after {one.ttft * 1e3:.1f} ms"
        return Reached(layout, memory, context, f"a sequence alone has a {promise}, later than promised", prefill=one.prefill, decode=one.decode, chunks=one.chunks, ttft=one.ttft, itl=one.itl)
    limit = "promises" if batch < most else "memory" if fits <= ROWS else "rows"
    return _at(replica, layout, memory, demand, batch, limit)


def _largest_batch(replica: Replica, layout: Layout, memory: RankMemory, demand: Demand, most: int) -> int:
    """Gaps and first tokens come later as the batch grows, so halving finds the largest that keeps the promises."""

    def keeps(batch: int) -> bool:
        one = _at(replica, layout, memory, demand, batch, "")
        return (demand.itl is None or one.itl <= demand.itl) and (demand.ttft is None or one.ttft <= demand.ttft)

    low, high = 0, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low


def _at(replica: Replica, layout: Layout, memory: RankMemory, demand: Demand, batch: int, limit: str) -> Reached:
    """Under full load, in one stage: per request its prompt once, and its output tokens at the cost of a batch's step shared by the batch.

        requests/s of a replica = 1 / (prompt seconds + output x step / batch)
        gap = pp x (step + batch x prompt seconds / output), since pp batches take turns

    A prompt of m chunks through pp stages takes (m + pp - 1) turns, of which pp - 1 are the bubble (Huang et al., GPipe, 2019). The first token
    comes after these and one turn of everything that decodes.
    """
    decode = replica.step(batch, batch * (demand.prompt + demand.output / 2), 0.0, batch)
    chunks = -(-demand.prompt // STEP_TOKENS)
    tokens = -(-demand.prompt // chunks)
    prefill = replica.step(tokens, 0.0, demand.prompt * (demand.prompt + 1) / 2 / chunks, 1)
    prompt_seconds = chunks * prefill.seconds
    per_request = prompt_seconds + demand.output * decode.seconds / batch
    rate = layout.dp / per_request
    return Reached(
        layout, memory, demand.prompt + demand.output, None, batch, limit, decode, prefill, chunks,
        ttft=(chunks + layout.pp - 1) * prefill.seconds + layout.pp * decode.seconds,
        itl=layout.pp * (decode.seconds + batch * prompt_seconds / demand.output),
        requests_per_second=rate, output_tokens_per_second=rate * demand.output, bubble=(layout.pp - 1) / (chunks + layout.pp - 1),
    )  # fmt: skip


def all_reached(shape: ModelShape, cluster: Cluster, placement: Placement, demand: Demand) -> list[Reached]:
    """Every layout, the best first, then those that cannot be."""
    found = [reached(shape, cluster, layout, placement, demand) for layout in layouts(cluster, shape)]
    return sorted(found, key=lambda each: (each.obstacle is not None, -each.output_tokens_per_second, each.ttft, each.layout.tp * each.layout.pp))


def recommended(found: Sequence[Reached]) -> Reached | None:
    """The most tokens per second that keep the promises; None when no layout does."""
    return found[0] if found and found[0].obstacle is None else None
