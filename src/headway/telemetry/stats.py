"""What the engine counts, as plain records; `telemetry.metrics` and the log line are made from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class AdapterUse:
    """LoRA adapters after a step: how many different ones may run at a time, and the names of those that run and those that are waited for."""

    most: int
    running: tuple[str, ...]
    waiting: tuple[str, ...]


@dataclass(slots=True)
class OffloadStats:
    """What the second tier of the KV cache did in one step: tokens that were looked for there and found, bytes copied out of the pool and
    back, copies that made room for others. `used_bytes` is the state now."""

    queried_tokens: int = 0
    found_tokens: int = 0
    bytes_out: int = 0
    bytes_in: int = 0
    evictions: int = 0
    used_bytes: int = 0


@dataclass(frozen=True, slots=True)
class KVEventStats:
    """Events of the KV cache since the last step: those that were published, and those that were dropped because too many waited."""

    published: int = 0
    dropped: int = 0


@dataclass(frozen=True, slots=True)
class StepStats:
    """One engine step. Gauges are values after the step, the rest are increments of this step."""

    running: int
    waiting: int
    kv_usage: float  # fraction of blocks in use, 0..1
    scheduled_tokens: int
    prompt_tokens: int  # prompt tokens computed or taken from the cache in this step, each once per request
    cached_prompt_tokens: int
    generation_tokens: int
    prefix_queries: int  # tokens looked up in the prefix cache, at first admission only
    prefix_hits: int  # tokens found there
    preemptions: int
    preempted_tokens: int  # computed tokens of preempted sequences; their blocks may be found again
    first_token_seconds: tuple[float, ...] = ()
    inter_token_seconds: tuple[float, ...] = ()  # tokens that a draft brought together count once
    drafts: tuple[tuple[int, int], ...] = ()  # of each speculative draft, tokens proposed and accepted
    drafting: bool | None = None  # whether speculation is on; None = the engine was not asked to
    transferred_prompt_tokens: int = 0  # of the cached ones, what another engine computed
    adapters: AdapterUse | None = None  # with --enable-lora
    offload: OffloadStats | None = None  # with --kv-offloading-size
    kv_events: KVEventStats | None = None  # with --kv-events-config


NOTHING = StepStats(
    running=0, waiting=0, kv_usage=0.0, scheduled_tokens=0, prompt_tokens=0, cached_prompt_tokens=0, generation_tokens=0,
    prefix_queries=0, prefix_hits=0, preemptions=0, preempted_tokens=0,
)  # fmt: skip
"""What there is when nothing runs."""


@dataclass(frozen=True, slots=True)
class RankStats:
    """The processes that compute a model together: whether each is up, by rank. `restart`: why the model is about to be loaded again."""

    up: Mapping[int, bool]
    restart: str | None = None


@dataclass(frozen=True, slots=True)
class RequestStats:
    """One finished request (a sequence; n=2 gives two). Times in seconds."""

    finish_reason: str  # stop | length | abort | error
    prompt_tokens: int
    generation_tokens: int
    cached_tokens: int
    preemptions: int
    n: int
    max_tokens: int | None
    e2e_seconds: float
    queue_seconds: float
    prefill_seconds: float
    decode_seconds: float
    time_per_output_token: float | None = None  # decode_seconds / (generation_tokens - 1)
    last_of_request: bool = True  # False for all but the last to finish of n sequences
    longest_generation_tokens: int = 0  # with the last of n > 1 sequences: generated tokens of the longest
    all_generation_tokens: int = 0  # with the last sequence: generated tokens of all of them
    request_id: str = ""
    temperature: float | None = None
    top_p: float | None = None
    trace_headers: Mapping[str, str] | None = field(default_factory=dict)  # W3C Trace Context of the caller; None = no span
