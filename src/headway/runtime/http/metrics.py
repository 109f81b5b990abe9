"""`GET /metrics` of the worker: collectors in one registry, and what feeds them. Labels never hold a request's content."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from headway.runtime.served_model import ServedModel, ServedModels

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12)
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
_TOKENS = (64, 256, 1024, 4096, 16384, 65536, 262144)


class WorkerMetrics:
    """One registry of its own, so that a process may hold several workers (tests do)."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = self._counter("vllm_srun_requests", "Requests by endpoint and status (499: the client left).", "endpoint", "status")
        self._duration = self._histogram("vllm_srun_request_duration_seconds", "From arrival to the answer.", _SECONDS, "endpoint")
        self._questions = self._counter("vllm_srun_questions", "Questions by type and outcome.", "type", "outcome")
        self._input_tokens = self._counter("vllm_srun_input_tokens", "Tokens of answered requests.")
        self._truncated = self._counter("vllm_srun_truncated_inputs", "Inputs of which only the beginning was read.", "model")
        self._bundle_tasks = self._histogram("vllm_srun_bundle_tasks", "Tasks of a bundle.", _ROWS)
        self._late = self._counter("vllm_srun_deadline_dropped_questions", "Items given up because their deadline passed.")
        self._queue = self._histogram("vllm_srun_queue_duration_seconds", "Waiting for the device, per job.", _SECONDS, "model")
        self._forward = self._histogram("vllm_srun_forward_duration_seconds", "One forward pass.", _SECONDS, "model")
        self._rows = self._histogram("vllm_srun_batch_rows", "Rows of a forward pass.", _ROWS, "model")
        self._tokens = self._histogram("vllm_srun_batch_tokens", "Tokens of a forward pass.", _TOKENS, "model")
        self._cache = self._counter("vllm_srun_result_cache", "Rows found in the result cache, and not.", "model", "outcome")
        self._endpoints: dict[tuple[str, int], Counter] = {}
        self._durations: dict[str, Histogram] = {}

    def watch(self, models: ServedModels) -> None:
        """Show the state of these models from now on."""
        self._registry.register(_ModelStates(models))

    def on_request(self, endpoint: str, status: int, seconds: float) -> None:
        counter = self._endpoints.get((endpoint, status))
        if counter is None:
            counter = self._endpoints[endpoint, status] = self._requests.labels(endpoint, str(status))
            self._durations[endpoint] = self._duration.labels(endpoint)
        counter.inc()
        self._durations[endpoint].observe(seconds)

    def on_input_tokens(self, tokens: int) -> None:
        self._input_tokens.inc(tokens)

    def on_truncated(self, model: str, items: int) -> None:
        self._truncated.labels(model).inc(items)

    def on_question(self, kind: str, outcome: str) -> None:
        """`kind` is one of the known types, `outcome` "answered" or an item code."""
        self._questions.labels(kind, outcome).inc()

    def on_bundle(self, tasks: int) -> None:
        self._bundle_tasks.observe(tasks)

    def of_model(self, name: str) -> ModelObserver:
        """What the scheduler of that model reports to."""
        return ModelObserver(self, name)

    def text(self) -> bytes:
        return generate_latest(self._registry)

    def _counter(self, name: str, help: str, *labels: str) -> Counter:
        return Counter(name, help, labels, registry=self._registry)

    def _histogram(self, name: str, help: str, buckets: tuple[float, ...], *labels: str) -> Histogram:
        return Histogram(name, help, labels, buckets=buckets, registry=self._registry)


class ModelObserver:
    """An ExecutionObserver whose label is the model's name."""

    def __init__(self, metrics: WorkerMetrics, name: str):
        self._queue, self._forward = metrics._queue.labels(name), metrics._forward.labels(name)
        self._rows, self._tokens = metrics._rows.labels(name), metrics._tokens.labels(name)
        self._hits, self._misses = metrics._cache.labels(name, "hit"), metrics._cache.labels(name, "miss")
        self._late = metrics._late

    def on_forward(self, rows: int, tokens: int, seconds: float) -> None:
        self._forward.observe(seconds)
        self._rows.observe(rows)
        self._tokens.observe(tokens)

    def on_queued(self, seconds: float) -> None:
        self._queue.observe(seconds)

    def on_cache(self, hits: int, misses: int) -> None:
        if hits:
            self._hits.inc(hits)
        if misses:
            self._misses.inc(misses)

    def on_late(self, rows: int) -> None:
        self._late.inc(rows)


class _ModelStates(Collector):
    """Gauges that are read when somebody asks."""

    def __init__(self, models: ServedModels):
        self._models = models

    def collect(self) -> Iterator[GaugeMetricFamily]:
        ready = all(model.is_ready for model in self._models.models)
        yield GaugeMetricFamily("vllm_srun_ready", "1 when every model is ready.", value=float(ready))
        depth = GaugeMetricFamily("vllm_srun_queue_depth", "Unanswered jobs.", labels=["model"])
        memory = GaugeMetricFamily("vllm_srun_model_memory_bytes", "What the weights occupy.", labels=["model"])
        info = GaugeMetricFamily(
            "vllm_srun_model_info", "Always 1; the labels tell.",
            labels=["model", "revision", "family", "engine", "accelerator", "device"],
        )  # fmt: skip
        for model in self._models.models:
            running = model.running
            if running is not None:
                depth.add_metric([model.name], running.scheduler.admission.jobs)
                memory.add_metric([model.name], running.model.memory_bytes)
                info.add_metric(_labels(model), 1)
        yield from (depth, memory, info)


def _labels(model: ServedModel) -> list[str]:
    running = model.running
    assert running is not None
    placed = running.placed
    return [model.name, running.identity.revision or "local", running.family, placed.engine, placed.accelerator, placed.device]
