"""EngineMetrics: what the engine and the server report, kept for Prometheus."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

from headway.telemetry.metric_families import (
    ENGINE_LABELS,
    FAMILIES,
    HTTP_EXCLUDED,
    KV_EVENTS,
    LEASE_EVENTS,
    LEASED_BLOCKS,
    LEASES,
    MEMORY,
    OFFLOAD_BYTES,
    OFFLOAD_EVICTIONS,
    OFFLOAD_USED,
    RANK_UP,
    RESTARTS,
    SPECULATION,
    TRANSFER_BYTES,
    TRANSFER_SECONDS,
    TRANSFERS,
    UP_TO_CONTEXT,
    Family,
    one_two_five,
)
from headway.telemetry.series import LabelValues, Series
from headway.telemetry.stats import AdapterUse, OffloadStats, RankStats, RequestStats, StepStats
from headway.telemetry.transfer_stats import TransferStats

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4  # of what render() returns
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_CACHE_INFO = "vllm:cache_config_info"
_LORA_INFO = "vllm:lora_requests_info"
SLEEP_STATES: Mapping[str, int | None] = {"awake": None, "weights_offloaded": 1, "discard_all": 2}


class EngineMetrics(Collector):
    """The families of `metric_families` for one engine, in a registry of their own.

    The engine's thread reports, any thread may render. `max_model_len` bounds the token buckets; when it is only known
    after loading, leave it out and call `set_max_model_len` before the first request. `legacy_names=False` leaves the
    old spellings out; they are other names for the same numbers, so nothing is counted twice. `buckets` replaces the
    borders of histograms, by family name.
    """

    def __init__(
        self,
        model_name: str,
        engine: str = "0",
        *,
        max_model_len: int | None = None,
        legacy_names: bool = True,
        buckets: Mapping[str, tuple[float, ...]] | None = None,
    ) -> None:
        self.model_name = model_name
        self.engine = engine
        self.legacy_names = legacy_names
        self._buckets = buckets or {}
        self._shared: LabelValues = (model_name, engine)
        self._lock = threading.Lock()
        self._cache_info: dict[str, str] | None = None
        self._max_model_len = max_model_len
        self._adapters: tuple[AdapterUse, float] | None = None  # and when it was so
        self._series = {family.name: self._new_series(family, max_model_len) for family in FAMILIES}
        self.on_sleep(None)
        self.registry = CollectorRegistry()
        self.registry.register(self)
        ProcessCollector(registry=self.registry)

    def _new_series(self, family: Family, max_model_len: int | None) -> Series:
        chosen = self._buckets.get(family.name, family.buckets)
        bounds = one_two_five(max_model_len or 0) if isinstance(chosen, str) else chosen
        return Series(family, self._shared if family.all_labels[:2] == ENGINE_LABELS else (), bounds)

    def set_max_model_len(self, max_model_len: int) -> None:
        """Give the token histograms their buckets. Call it before the first request ends: it starts them anew, unless nothing changes."""
        if max_model_len == self._max_model_len:
            return
        self._max_model_len = max_model_len
        with self._lock:
            for family in FAMILIES:
                if family.buckets == UP_TO_CONTEXT:
                    self._series[family.name] = self._new_series(family, max_model_len)

    def set_cache_info(self, info: Mapping[str, object]) -> None:
        """The cache configuration (block_size, num_gpu_blocks, ...) as labels of cache_config_info."""
        with self._lock:
            self._cache_info = {key: str(value) for key, value in info.items()}

    def set_memory(self, parts: Mapping[str, int | None]) -> None:
        """Bytes that the engine holds, by part; what is not known is left out."""
        with self._lock:
            for part, nbytes in parts.items():
                if nbytes is not None:
                    self._series[MEMORY].set((self.model_name, part), nbytes)

    def on_step(self, step: StepStats) -> None:
        """One engine step. About 20 us, and 0.2 us more for each first token and each gap."""
        with self._lock:
            self._set("num_requests_running", step.running)
            self._set("num_requests_waiting", step.waiting)
            self._set("num_requests_waiting_by_reason", step.waiting, "capacity")
            self._set("kv_cache_usage_perc", step.kv_usage)
            self._add("prompt_tokens", step.prompt_tokens)
            self._add("prompt_tokens_by_source", step.prompt_tokens - step.cached_prompt_tokens, "local_compute")
            self._add("prompt_tokens_by_source", step.cached_prompt_tokens - step.transferred_prompt_tokens, "local_cache_hit")
            self._add("prompt_tokens_by_source", step.transferred_prompt_tokens, "external_kv_transfer")
            self._add("prompt_tokens_cached", step.cached_prompt_tokens)
            self._add("generation_tokens", step.generation_tokens)
            self._add("prefix_cache_queries", step.prefix_queries)
            self._add("prefix_cache_hits", step.prefix_hits)
            self._add("num_preemptions", step.preemptions)
            if step.scheduled_tokens:
                self._observe("iteration_tokens_total", step.scheduled_tokens)
            self._observe("time_to_first_token_seconds", *step.first_token_seconds)
            self._observe("inter_token_latency_seconds", *step.inter_token_seconds)
            if step.adapters is not None:
                self._adapters = step.adapters, time.time()
            if step.offload is not None:
                self._on_offload(step.offload)
            if step.kv_events is not None:
                self._series[KV_EVENTS].add((self.model_name, "published"), step.kv_events.published)
                self._series[KV_EVENTS].add((self.model_name, "dropped"), step.kv_events.dropped)
            if step.drafting is not None:
                self._speculation(step.drafts, step.drafting)

    def _speculation(self, drafts: tuple[tuple[int, int], ...], drafting: bool) -> None:
        self._series[SPECULATION].set((self.model_name,), drafting)
        self._add("spec_decode_num_drafts", len(drafts))
        for proposed, accepted in drafts:
            self._add("spec_decode_num_draft_tokens", proposed)
            self._add("spec_decode_num_accepted_tokens", accepted)
            for position in range(accepted):
                self._add("spec_decode_num_accepted_tokens_per_pos", 1, str(position))

    def _on_offload(self, offload: OffloadStats) -> None:
        self._add("external_prefix_cache_queries", offload.queried_tokens)
        self._add("external_prefix_cache_hits", offload.found_tokens)
        self._series[OFFLOAD_BYTES].add((self.model_name, "out"), offload.bytes_out)
        self._series[OFFLOAD_BYTES].add((self.model_name, "in"), offload.bytes_in)
        self._series[OFFLOAD_EVICTIONS].add((self.model_name,), offload.evictions)
        self._series[OFFLOAD_USED].set((self.model_name,), offload.used_bytes)

    def on_transfer(self, transfer: TransferStats) -> None:
        """KV blocks moved between engines, or leases changed."""
        with self._lock:
            if transfer.lease_event is not None:
                self._series[LEASE_EVENTS].add((self.model_name, transfer.lease_event), 1)
                self._series[LEASES].set((self.model_name,), transfer.leases)
                self._series[LEASED_BLOCKS].set((self.model_name,), transfer.leased_blocks)
            if transfer.outcome is not None:
                direction = "out" if transfer.sends else "in"
                self._series[TRANSFERS].add((self.model_name, direction, transfer.outcome), 1)
                if transfer.nbytes:
                    self._series[TRANSFER_BYTES].add((self.model_name, direction), transfer.nbytes)
                    self._series[TRANSFER_SECONDS].histogram((self.model_name, direction)).observe(transfer.seconds)

    def on_sleep(self, level: int | None) -> None:
        """The engine fell asleep at `level`, or woke up (None)."""
        with self._lock:
            for state, each in SLEEP_STATES.items():
                self._set("engine_sleep_state", each == level, state)

    def on_ranks(self, ranks: RankStats) -> None:
        """The ranks came up or failed, or the model is about to be loaded again because of that."""
        with self._lock:
            for rank, up in ranks.up.items():
                self._series[RANK_UP].set((self.model_name, str(rank)), up)
            if ranks.up:
                self._series[RESTARTS].add((self.model_name, "rank_failed"), 0)
            if ranks.restart is not None:
                self._series[RESTARTS].add((self.model_name, ranks.restart), 1)

    def on_request(self, request: RequestStats) -> None:
        """One finished sequence. n and the longest output are counted with the last sequence of the request."""
        with self._lock:
            self._add("request_success", 1, request.finish_reason)
            self._observe("request_num_preemptions", request.preemptions)
            self._observe("e2e_request_latency_seconds", request.e2e_seconds)
            self._observe("request_queue_time_seconds", request.queue_seconds)
            self._observe("request_prompt_tokens", request.prompt_tokens)
            self._observe("request_generation_tokens", request.generation_tokens)
            if request.max_tokens is not None:
                self._observe("request_params_max_tokens", request.max_tokens)
            if request.generation_tokens:
                self._observe("request_prefill_kv_computed_tokens", request.prompt_tokens - request.cached_tokens)
                self._observe("request_prefill_time_seconds", request.prefill_seconds)
                self._observe("request_decode_time_seconds", request.decode_seconds)
                self._observe("request_inference_time_seconds", request.prefill_seconds + request.decode_seconds)
            if request.time_per_output_token is not None:
                self._observe("request_time_per_output_token_seconds", request.time_per_output_token)
            if request.last_of_request:
                self._observe("request_params_n", request.n)
                self._observe(
                    "request_max_num_generation_tokens", max(request.generation_tokens, request.longest_generation_tokens)
                )

    def on_rejection(self, reason: str) -> None:
        """A request refused by a queue limit; `reason` is the limit's name, as in EngineConfig."""
        with self._lock:
            self._add("admission_rejections", 1, reason)

    def on_http(self, handler: str, method: str, status: int, seconds: float) -> None:
        """An answered HTTP request. `handler` is the route's template ("none" for unknown routes), never the raw path."""
        if handler in HTTP_EXCLUDED:
            return
        method = method if method in _METHODS else "other"  # clients may make methods up; labels must stay few
        with self._lock:
            self._series["http_requests"].add((handler, method, f"{status // 100}xx"), 1)
            self._series["http_request_duration_seconds"].histogram((handler, method)).observe(seconds)

    def render(self) -> bytes:
        """Prometheus text format 0.0.4 (`CONTENT_TYPE`)."""
        return generate_latest(self.registry)

    def describe(self) -> list[Metric]:
        return []

    def collect(self) -> Iterator[Metric]:
        """All families, aliases behind their original, as prometheus_client's records."""
        with self._lock:
            shown: list[Metric] = []
            for series in self._series.values():
                if series.family.kind == "info":
                    continue
                names = (series.family.name, *(series.family.aliases if self.legacy_names else ()))
                shown.extend(series.metric(name) for name in names)
            if self._cache_info is not None:
                shown.append(self._info_metric(_CACHE_INFO, self._cache_info, 1))
            if self._adapters is not None:
                use, when = self._adapters
                seen = {"waiting_lora_adapters": ",".join(use.waiting), "running_lora_adapters": ",".join(use.running)}
                shown.append(self._info_metric(_LORA_INFO, {"max_lora": str(use.most), **seen}, when))
        yield from shown

    def _info_metric(self, name: str, info: Mapping[str, str], value: float) -> Metric:
        labels = {**info, **dict(zip(ENGINE_LABELS, self._shared, strict=True))}
        help_text = next(family.help for family in FAMILIES if family.name == name)
        metric = GaugeMetricFamily(name, help_text, labels=list(labels))
        metric.add_metric(list(labels.values()), value)
        return metric

    def _set(self, name: str, value: float, *labels: str) -> None:
        self._series["vllm:" + name].set((*self._shared, *labels), value)

    def _add(self, name: str, amount: float, *labels: str) -> None:
        if amount:
            self._series["vllm:" + name].add((*self._shared, *labels), amount)

    def _observe(self, name: str, *values: float) -> None:
        self._series["vllm:" + name].histogram(self._shared).observe_all(values)
