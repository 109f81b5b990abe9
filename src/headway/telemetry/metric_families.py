"""Every metric family of the engine, as one table. `telemetry.metrics` fills it, `docs/metrics.md` is printed from it.

Names, labels and buckets follow vLLM 0.32. A family is here only when this engine can fill it truthfully: what
belongs to a feature that does not exist (multimodal input) is absent, not 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PREFIX = "vllm:"
MEMORY = "headway:memory_bytes"
OFFLOAD_BYTES = "headway:kv_offload_bytes"
OFFLOAD_EVICTIONS = "headway:kv_offload_evictions"
OFFLOAD_USED = "headway:kv_offload_used_bytes"
KV_EVENTS = "headway:kv_events"
SPECULATION = "headway:speculation_active"
TRANSFERS = "headway:kv_transfers"
TRANSFER_BYTES = "headway:kv_transfer_bytes"
TRANSFER_SECONDS = "headway:kv_transfer_seconds"
LEASE_EVENTS = "headway:kv_transfer_lease_events"
LEASES = "headway:kv_transfer_leases"
LEASED_BLOCKS = "headway:kv_transfer_leased_blocks"
RANK_UP = "headway:rank_up"
RESTARTS = "headway:engine_restarts"
ENGINE_LABELS = ("model_name", "engine")  # on every family whose name carries the prefix

LATENCY = (0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960, 1920, 7680)
FIRST_TOKEN = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75),
    *(1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560),
)
BETWEEN_TOKENS = (
    *(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75),
    *(1, 2.5, 5, 7.5, 10, 20, 40, 80),
)
ITERATION = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384)
SEQUENCES = (1, 2, 5, 10, 20)
PREEMPTIONS = (1, 2, 3, 4, 5, 10, 20)
HTTP_SECONDS = (0.1, 0.5, 1)
UP_TO_CONTEXT = "1-2-5 series up to the context length"

Buckets = tuple[float, ...] | str  # the only string is UP_TO_CONTEXT


@dataclass(frozen=True, slots=True)
class Family:
    """One metric family.

    `name` has the prefix but not `_total`, which the text format adds to counters. `labels` come after model_name and
    engine. `preset` are label values that exist from the start, so that a rate can be taken from the first event on.
    `aliases` are whole names under which the same samples appear again.
    """

    name: str
    kind: Literal["gauge", "counter", "histogram", "info"]
    help: str
    labels: tuple[str, ...] = ()
    preset: tuple[tuple[str, ...], ...] = ()
    buckets: Buckets = ()
    aliases: tuple[str, ...] = ()

    @property
    def exposed(self) -> str:
        """The name as it stands in the text."""
        return self.name + "_total" if self.kind == "counter" else self.name

    @property
    def all_labels(self) -> tuple[str, ...]:
        return (*ENGINE_LABELS, *self.labels) if self.name.startswith(PREFIX) else self.labels


def one_two_five(limit: int) -> tuple[float, ...]:
    """1, 2, 5, 10, 20, 50, ... up to and including `limit`; empty for limit < 1."""
    series: list[float] = []
    unit = 1
    while unit <= limit:
        series.extend(step * unit for step in (1, 2, 5) if step * unit <= limit)
        unit *= 10
    return tuple(series)


FINISH_REASONS = ("stop", "length", "abort", "error", "repetition")
_SEED = "vllm_"  # the spelling of older guides

FAMILIES: tuple[Family, ...] = (
    # state now
    Family("vllm:num_requests_running", "gauge", "Sequences in the running batch.", aliases=(_SEED + "num_requests_running",)),
    Family("vllm:num_requests_waiting", "gauge", "Sequences that wait to be scheduled."),
    Family(
        "vllm:num_requests_waiting_by_reason",
        "gauge",
        "Waiting sequences by what they wait for: capacity (a place or KV blocks) or deferred (anything else; always 0 here).",
        labels=("reason",),
        preset=(("capacity",), ("deferred",)),
    ),
    Family(
        "vllm:kv_cache_usage_perc",
        "gauge",
        "Fraction of KV cache blocks in use, 0 to 1.",
        aliases=("vllm:gpu_cache_usage_perc", _SEED + "gpu_cache_usage_perc"),
    ),
    Family(
        "vllm:engine_sleep_state", "gauge", "1 for the state that the engine is in: awake, weights_offloaded (level 1) or discard_all (level 2).",
        labels=("sleep_state",), preset=(("awake",), ("weights_offloaded",), ("discard_all",)),
    ),
    Family("vllm:cache_config_info", "info", "1, with the cache configuration as labels; present once the model is loaded."),
    Family(
        "vllm:lora_requests_info", "info",
        "Unix time of the last step, with the LoRA adapters that run and that are waited for as labels, and max_lora, how many may run side by side; only with --enable-lora.",
    ),
    Family(
        MEMORY, "gauge",
        "Bytes of memory: weights (counted), kv_cache (reserved, committed as it is written), activations (the most that one step takes, reckoned).",
        labels=("model_name", "part"),
    ),
    # tokens
    Family("vllm:prompt_tokens", "counter", "Prompt tokens processed, computed or taken from the prefix cache."),
    Family(
        "vllm:prompt_tokens_by_source",
        "counter",
        "Prompt tokens by where their keys and values came from.",
        labels=("source",),
        preset=(("local_compute",), ("local_cache_hit",), ("external_kv_transfer",)),
    ),
    Family("vllm:prompt_tokens_cached", "counter", "Prompt tokens taken from the prefix cache."),
    Family("vllm:generation_tokens", "counter", "Tokens generated."),
    Family("vllm:prefix_cache_queries", "counter", "Tokens looked up in the prefix cache."),
    Family("vllm:prefix_cache_hits", "counter", "Tokens found in the prefix cache."),
    Family("vllm:external_prefix_cache_queries", "counter", "Tokens looked up in the second tier of the KV cache (--kv-offloading-size)."),
    Family("vllm:external_prefix_cache_hits", "counter", "Tokens found there."),
    Family(
        OFFLOAD_BYTES, "counter", "Bytes of KV blocks copied to the second tier (out) and back (in).",
        labels=("model_name", "direction"),
    ),
    Family(OFFLOAD_EVICTIONS, "counter", "Copies in the second tier that made room for others.", labels=("model_name",)),
    Family(OFFLOAD_USED, "gauge", "Bytes of copies in the second tier.", labels=("model_name",)),
    Family(
        KV_EVENTS, "counter", "Events of the KV cache (--kv-events-config): published, or dropped because too many waited for the publisher.",
        labels=("model_name", "outcome"),
    ),
    Family("vllm:iteration_tokens_total", "histogram", "Tokens scheduled in one engine step.", buckets=ITERATION),
    # KV transfer (--kv-transfer-config)
    Family(
        TRANSFERS, "counter", "Prompts whose KV blocks moved between engines, or did not: outcome sent, pulled or the reason of the failure.",
        labels=("model_name", "direction", "outcome"),
    ),
    Family(TRANSFER_BYTES, "counter", "Bytes of KV blocks pulled (in) and sent (out).", labels=("model_name", "direction")),
    Family(TRANSFER_SECONDS, "histogram", "Time of one successful transfer.", labels=("model_name", "direction"), buckets=FIRST_TOKEN),
    Family(LEASE_EVENTS, "counter", "Finished prefills that were kept, taken, expired, or dropped to make room.", labels=("model_name", "event")),
    Family(LEASES, "gauge", "Finished prefills that are kept.", labels=("model_name",)),
    Family(LEASED_BLOCKS, "gauge", "KV blocks that they hold.", labels=("model_name",)),
    # speculative decoding
    Family("vllm:spec_decode_num_drafts", "counter", "Speculative drafts that were verified."),
    Family("vllm:spec_decode_num_draft_tokens", "counter", "Tokens in these drafts."),
    Family("vllm:spec_decode_num_accepted_tokens", "counter", "Tokens in these drafts that were accepted."),
    Family("vllm:spec_decode_num_accepted_tokens_per_pos", "counter", "Accepted tokens by their place in the draft, from 0.", labels=("position",)),
    Family(
        SPECULATION, "gauge",
        "1 while drafts are expected to save time, 0 after speculative decoding switched itself off; absent without --speculative-config.",
        labels=("model_name",),
    ),
    # several processes
    Family(RANK_UP, "gauge", "1 while this process computes its part of the model; absent unless several do.", labels=("model_name", "rank")),
    Family(
        RESTARTS, "counter", "Attempts to load the model again, by what failed before: rank_failed, or the reason of the attempt before.",
        labels=("model_name", "reason"),
    ),
    # requests
    Family(
        "vllm:request_success",
        "counter",
        "Finished sequences by reason.",
        labels=("finished_reason",),
        preset=tuple((reason,) for reason in FINISH_REASONS),
        aliases=(_SEED + "request_success",),
    ),
    Family(
        "vllm:admission_rejections",
        "counter",
        "Requests refused because a queue limit was reached, by the limit.",
        labels=("reason",),
        preset=(("max_num_queued_reqs",), ("max_num_queued_tokens",)),
    ),
    Family("vllm:num_preemptions", "counter", "Sequences put back into the queue because the KV cache was full."),
    Family(
        "vllm:request_num_preemptions",
        "histogram",
        "Preemptions of one finished sequence.",
        buckets=PREEMPTIONS,
    ),
    # times
    Family(
        "vllm:time_to_first_token_seconds",
        "histogram",
        "From arrival to the first token.",
        buckets=FIRST_TOKEN,
        aliases=(_SEED + "time_to_first_token_seconds",),
    ),
    Family(
        "vllm:inter_token_latency_seconds",
        "histogram",
        "Between two consecutive tokens of a sequence.",
        buckets=BETWEEN_TOKENS,
        aliases=("vllm:time_per_output_token_seconds", _SEED + "time_per_output_token_seconds"),
    ),
    Family(
        "vllm:request_time_per_output_token_seconds",
        "histogram",
        "Decode time of a finished sequence divided by (generated tokens - 1).",
        buckets=BETWEEN_TOKENS,
    ),
    Family("vllm:e2e_request_latency_seconds", "histogram", "From arrival to the end.", buckets=LATENCY),
    Family("vllm:request_queue_time_seconds", "histogram", "From arrival to the first scheduling.", buckets=LATENCY),
    Family(
        "vllm:request_prefill_time_seconds",
        "histogram",
        "From the first scheduling to the first token; sequences that ended before it are not counted.",
        buckets=LATENCY,
    ),
    Family("vllm:request_decode_time_seconds", "histogram", "From the first token to the last.", buckets=LATENCY),
    Family("vllm:request_inference_time_seconds", "histogram", "Prefill time plus decode time.", buckets=LATENCY),
    # sizes
    Family("vllm:request_prompt_tokens", "histogram", "Prompt tokens of a finished sequence.", buckets=UP_TO_CONTEXT),
    Family("vllm:request_generation_tokens", "histogram", "Generated tokens of a finished sequence.", buckets=UP_TO_CONTEXT),
    Family(
        "vllm:request_max_num_generation_tokens",
        "histogram",
        "The longest of the n sequences of a request, in generated tokens.",
        buckets=UP_TO_CONTEXT,
    ),
    Family(
        "vllm:request_prefill_kv_computed_tokens",
        "histogram",
        "Prompt tokens of a finished sequence that were computed, that is, not taken from the prefix cache.",
        buckets=UP_TO_CONTEXT,
    ),
    Family("vllm:request_params_n", "histogram", "The parameter n of a request.", buckets=SEQUENCES),
    Family(
        "vllm:request_params_max_tokens",
        "histogram",
        "The parameter max_tokens of a sequence; requests without one are not counted.",
        buckets=UP_TO_CONTEXT,
    ),
    # HTTP
    Family("http_requests", "counter", "HTTP requests by route, method and status class.", labels=("handler", "method", "status")),
    Family(
        "http_request_duration_seconds",
        "histogram",
        "Seconds until the whole answer was sent.",
        labels=("handler", "method"),
        buckets=HTTP_SECONDS,
    ),
)

# Routes that are asked often and say nothing about the load: not counted among the HTTP requests.
HTTP_EXCLUDED = frozenset({"/metrics", "/health", "/load", "/ping", "/version", "/server_info"})
