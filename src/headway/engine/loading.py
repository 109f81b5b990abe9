"""From an EngineConfig to an engine that can step: find, inspect, check, load, reserve, warm."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from headway import __version__
from headway.artifacts.card import ModelCard
from headway.artifacts.small_files import tokenizer_path
from headway.artifacts.tokenizer import Tokenizer, load_tokenizer
from headway.capacity.fit import CapacityReport
from headway.engine.admission import AdmissionLimits
from headway.engine.assembly import assemble
from headway.engine.batch_invariance import arithmetic
from headway.engine.cache_dtype import cache_dtype
from headway.engine.cache_size import cache_size, log_cache_size
from headway.engine.compute_dtype import compute_dtype
from headway.engine.config import EngineConfig
from headway.engine.configured_card import configured_card
from headway.engine.core import EngineCore, Observers
from headway.engine.default_sampling import default_sampling
from headway.engine.distributed.rank_group import RankGroup
from headway.engine.distributed.start_ranks import rank_threads, start_ranks
from headway.engine.images.attachment import check_images, make_images
from headway.engine.kv_events.publisher import EventPublisher
from headway.engine.kv_events.start import publish_kv_events
from headway.engine.lora.attachment import make_lora
from headway.engine.lora.registry import AdapterRegistry
from headway.engine.memory_use import MemoryUse, memory_use
from headway.engine.online_rounding_choice import rounding_choice
from headway.engine.planned_model import planned_model
from headway.engine.pooling.model_use import make_pooler
from headway.engine.pooling.pooler import UNREAD, Pooler
from headway.engine.processor_loading import make_processors, processor_classes
from headway.engine.recovery.rank_watch import close
from headway.engine.structured.config import structured_config
from headway.engine.structured.forms import Forms
from headway.engine.warm_up import warm_up
from headway.host.cpu_budget import cpu_budget
from headway.host.memory_budget import process_rss
from headway.kernels.interface import Kernels
from headway.models.causal_lm import CausalLM
from headway.models.load import load_planned
from headway.models.plan import ModelPlan

if TYPE_CHECKING:
    from headway.engine.images.reader import ImageReader

_log = logging.getLogger(__name__)
_GIB = 1 << 30

OnStage = Callable[[str, float], None]  # stage, progress 0..1 within it


@dataclass(frozen=True, slots=True)
class LoadedEngine:
    """An engine ready to step, and what is known about it."""

    core: EngineCore
    card: ModelCard
    tokenizer: Tokenizer
    limits: AdmissionLimits
    capacity: CapacityReport
    default_sampling: dict[str, Any]
    memory: MemoryUse
    forms: Forms
    pooler: Pooler = UNREAD
    adapters: AdapterRegistry | None = None  # with --enable-lora
    images: ImageReader | None = None  # of a model that reads them
    kv_events: EventPublisher | None = None  # with --kv-events-config
    ranks: RankGroup | None = None  # when several processes compute the model

    def close(self) -> None:
        """End the threads and processes beside it. May be called again."""
        self.forms.close()
        if self.kv_events is not None:
            self.kv_events.close()
        close(self.ranks)


def load_engine(config: EngineConfig, on_stage: OnStage = lambda stage, progress: None, observers: Observers | None = None) -> LoadedEngine:
    """Do everything up to the first step; logs the lines that people grep for. Raises ArtifactError, ConfigError, CapacityError."""
    threads = cpu_budget()
    torch.set_num_threads(rank_threads(config, threads.threads))
    on_stage("resolving", 0.0)
    card = configured_card(config, lambda done: on_stage("resolving", done))
    on_stage("inspecting", 0.0)
    rounding = rounding_choice(config, card)
    _log.info("Resolved architecture: %s", card.architecture)
    dtype = compute_dtype(config.dtype, card)
    _log.info("Initializing a V1 LLM engine (v%s) with config: %s, dtype=%s, %s", __version__, config, dtype, threads)
    parts = arithmetic(config.batch_invariant, dtype)
    kept = cache_dtype(config.kv_cache_dtype, dtype, parts.kernels)
    processors = processor_classes(config.logits_processors)
    tokenizer = _tokenizer(config, card)
    defaults = default_sampling(config, card)
    check_images(config, card)
    planned = planned_model(config, card, dtype, parts.kernels, rounding)
    (observers or Observers()).on_plan(planned)
    ranks = start_ranks(config, planned.plan, planned.expected.max_model_len, threads.threads)
    with contextlib.ExitStack() as undone:
        if ranks is not None:
            undone.callback(ranks.processes.close)
        plan = planned.plan if ranks is None else ranks.plan
        model = _load_weights(config, plan, dtype, parts.kernels, on_stage)
        pooler = make_pooler(config, card, model)
        started = time.monotonic()
        on_stage("warming", 0.0)
        capacity = cache_size(
            config, card, planned.plan.config.kv_shape, kept, planned.weight_bytes, longest=planned.expected.max_model_len, device=model.device,
        )
        log_cache_size(capacity, model.device)
        lora = make_lora(config, model, card.architecture, parts.kernels)
        images = make_images(config, card, planned.plan, model)
        core = assemble(config, model, tokenizer, capacity, kept, parts, make_processors(processors, config), observers, lora, images)
        warm_up(core.runner)
        kv_events = publish_kv_events(config.kv_events_config, core.scheduler.kv)
        _log.info("init engine (profile, create kv cache, warmup model) took %.2f s", time.monotonic() - started)
        limits = AdmissionLimits(capacity.max_model_len, model.config.vocab_size, config.max_logprobs, processors, generates=pooler.generates)
        forms = Forms(tokenizer, model.config.vocab_size, structured_config(config.structured_outputs_config))
        undone.pop_all()
        return LoadedEngine(core, card, tokenizer, limits, capacity, defaults, memory_use(config, card, core.runner, capacity), forms, pooler, None if lora is None else lora.registry, kv_events=kv_events, images=None if images is None else images.reader, ranks=None if ranks is None else ranks.processes)


def _tokenizer(config: EngineConfig, card: ModelCard) -> Tokenizer:
    if config.tokenizer_mode == "slow":
        _log.info("--tokenizer-mode slow: there is one implementation of each tokenizer, which is used")
    if config.tokenizer is None and config.tokenizer_revision is None:
        return load_tokenizer(card)
    reference, revision = config.tokenizer or config.model, config.tokenizer_revision
    return load_tokenizer(card, tokenizer_path(reference, revision=revision, cache_dir=config.download_dir, accept_licence=config.accept_licence))


def _load_weights(config: EngineConfig, plan: ModelPlan, dtype: torch.dtype, kernels: Kernels, on_stage: OnStage) -> CausalLM:
    _log.info("Starting to load model %s...", config.model)
    started, before = time.monotonic(), process_rss()
    model = load_planned(plan, dtype, kernels=kernels, progress=lambda done, total: on_stage("loading", done / max(total, 1)))
    seconds = time.monotonic() - started
    _log.info("Loading weights took %.2f seconds", seconds)
    _log.info("Model loading took %.2f GiB memory and %.6f seconds", (process_rss() - before) / _GIB, seconds)
    return model
