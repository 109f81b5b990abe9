"""Building the engine beside a server that already answers: importing it takes a second, loading the model longer."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headway.artifacts.card import ModelCard
from headway.engine.config import EngineConfig
from headway.engine.distributed.rank_group import RankStatus
from headway.engine.outputs import RequestOutput
from headway.engine.pooling.pooling_params import PoolingParams
from headway.engine.recovery.restart import Restart
from headway.engine.request_terms import RequestTerms
from headway.engine.sampling_params import SamplingParams
from headway.errors import LoadingError
from headway.server.engine_port import PoolerPort, StatusPort, TokenizerPort
from headway.server.instruments import Instruments
from headway.telemetry.metrics import EngineMetrics

if TYPE_CHECKING:
    from headway.engine.async_engine import AsyncEngine
    from headway.engine.images.reader import ImageReader
    from headway.engine.lora.registry import AdapterRegistry
    from headway.engine.operations.engine_operations import EngineOperations


@dataclass(frozen=True, slots=True)
class PendingStatus:
    stage: str
    progress: float = 0.0
    error: str | None = None
    steps: int = 0
    requests: int = 0
    running: int = 0
    waiting: int = 0
    kv_usage: float = 0.0
    held: str | None = None
    restart: Restart | None = None


class PendingEngine:
    """Stands in until the engine can serve: it has a configuration and a status, everything else is LoadingError.

    `behind` is the engine that loads, once there is one. Its stage "ready" shows as "warming", since what follows
    loading (buckets of metrics) is still to be done.
    """

    def __init__(self, config: EngineConfig):
        self.config = config
        self.behind: AsyncEngine | None = None

    @property
    def status(self) -> StatusPort:
        if self.behind is None:
            return PendingStatus("starting")
        status = self.behind.status
        return PendingStatus("warming", 1.0) if status.stage == "ready" else status

    @property
    def tokenizer(self) -> TokenizerPort:
        raise self._not_yet()

    @property
    def max_model_len(self) -> int:
        raise self._not_yet()

    @property
    def vocab_size(self) -> int:
        raise self._not_yet()

    @property
    def default_sampling(self) -> dict[str, Any]:
        raise self._not_yet()

    def generate(
        self, prompt: list[int], params: SamplingParams, request_id: str, /, terms: RequestTerms, **_: Any
    ) -> AsyncIterator[RequestOutput]:
        raise self._not_yet()

    def beam_search(
        self, prompt: list[int], shown: SamplingParams, request_id: str, /, terms: RequestTerms, **_: Any
    ) -> AsyncIterator[RequestOutput]:
        raise self._not_yet()

    @property
    def ranks(self) -> tuple[RankStatus, ...]:
        return () if self.behind is None else self.behind.ranks

    @property
    def card(self) -> ModelCard:
        raise self._not_yet()

    @property
    def images(self) -> ImageReader | None:
        raise self._not_yet()

    @property
    def pooler(self) -> PoolerPort:
        raise self._not_yet()

    @property
    def adapters(self) -> AdapterRegistry:
        raise self._not_yet()

    def encode(self, prompt: list[int], params: PoolingParams, request_id: str, /, terms: RequestTerms) -> AsyncIterator[RequestOutput]:
        raise self._not_yet()

    async def reset_prefix_cache(self, *, running: bool = False, offloaded: bool = False) -> bool:
        raise self._not_yet()

    @property
    def operations(self) -> EngineOperations:
        raise self._not_yet()

    def _not_yet(self) -> LoadingError:
        return LoadingError("The engine is starting")


async def start_engine(config: EngineConfig, metrics: EngineMetrics, watching: Instruments, *, beside: bool = False) -> AsyncEngine:
    """The engine, loading its model on a thread of its own, reporting to `metrics`, the log and what else is watching. `beside` another one
    it loads nothing that has no room there."""
    engine = await asyncio.to_thread(_build, config, metrics, watching, beside)
    engine.start()
    return engine


def _build(config: EngineConfig, metrics: EngineMetrics, watching: Instruments, beside: bool) -> AsyncEngine:
    from headway.engine.async_engine import AsyncEngine
    from headway.engine.core import Observers
    from headway.engine.operations.swap_room import require_room
    from headway.telemetry.stats import RequestStats, StepStats
    from headway.telemetry.stats_log import StatsLog
    from headway.telemetry.transfer_stats import TransferStats

    log = None if config.disable_log_stats else StatsLog(0, config.log_stats_interval)

    def on_step(step: StepStats) -> None:
        metrics.on_step(step)
        if log is not None:
            log.observe(step)

    def on_request(request: RequestStats) -> None:
        metrics.on_request(request)
        watching.on_request(request)

    def on_transfer(transfer: TransferStats) -> None:
        metrics.on_transfer(transfer)
        if log is not None:
            log.observe_transfer(transfer)

    def on_end() -> None:
        if log is not None:
            log.close()

    observers = Observers(on_step, on_request, watching.around_thread, on_end, on_ranks=metrics.on_ranks, on_transfer=on_transfer)
    if beside:
        observers.on_plan = require_room
    engine = AsyncEngine(config, observers)
    observers.on_restarted = lambda: describe_cache(metrics, engine)
    return engine


def describe_cache(metrics: EngineMetrics, engine: AsyncEngine) -> None:
    """Tell the metrics what is known only after loading."""
    metrics.set_max_model_len(engine.max_model_len)
    metrics.set_cache_info(_cache_info(engine.config, engine.loaded.capacity.num_blocks))
    metrics.set_memory(dataclasses.asdict(engine.loaded.memory))


def _cache_info(config: EngineConfig, num_blocks: int) -> dict[str, object]:
    """Labels of cache_config_info, named as in vLLM."""
    return {
        "block_size": config.block_size,
        "num_gpu_blocks": num_blocks,
        "num_cpu_blocks": 0,
        "num_gpu_blocks_override": config.num_gpu_blocks_override,
        "gpu_memory_utilization": config.gpu_memory_utilization,
        "kv_cache_memory_bytes": config.kv_cache_memory_bytes,
        "enable_prefix_caching": config.enable_prefix_caching,
        "cache_dtype": "auto",
        "prefix_caching_hash_algo": "sha256",
        "sliding_window": None,
    }
