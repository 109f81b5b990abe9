"""From an EngineConfig to an engine that can step: find, inspect, check, load, reserve, warm."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from headway import __version__
from headway.artifacts.card import ModelCard
from headway.artifacts.inspect import inspect
from headway.artifacts.tokenizer import Tokenizer, load_tokenizer
from headway.capacity.fit import CapacityReport, fit
from headway.capacity.kv_budget import kv_budget
from headway.capacity.kv_geometry import KvGeometry
from headway.engine.admission import AdmissionLimits
from headway.engine.compute_dtype import compute_dtype
from headway.engine.config import EngineConfig
from headway.engine.core import EngineCore, Observers
from headway.engine.default_sampling import default_sampling
from headway.engine.model_runner import ModelRunner
from headway.engine.sampler import Sampler
from headway.engine.scheduler import Scheduler, SchedulerLimits
from headway.engine.warm_up import warm_up
from headway.errors import ConfigError, NotBuiltError
from headway.host.cpu_budget import cpu_budget
from headway.host.memory_budget import memory_budget, process_rss
from headway.kernels.paged_kv import PagedKV
from headway.kvcache.manager import KVCacheManager
from headway.models.causal_lm import CausalLM
from headway.models.load import load_model

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


def load_engine(config: EngineConfig, on_stage: OnStage = lambda stage, progress: None, observers: Observers | None = None) -> LoadedEngine:
    """Do everything up to the first step; logs the lines that people grep for. Raises ArtifactError, ConfigError, CapacityError."""
    threads = cpu_budget()
    torch.set_num_threads(threads.threads)
    on_stage("resolving", 0.0)
    card = inspect(
        config.model, revision=config.revision, accept_licence=config.accept_licence,
        progress=lambda label, done, total: on_stage("resolving", done / total if total else 0.0),
    )  # fmt: skip
    on_stage("inspecting", 0.0)
    _check_quantization(config, card)
    _log.info("Resolved architecture: %s", card.architecture)
    dtype = compute_dtype(config.dtype, card)
    _log.info("Initializing a V1 LLM engine (v%s) with config: %s, dtype=%s, %s", __version__, config, dtype, threads)
    tokenizer = load_tokenizer(card, config.tokenizer)
    model = _load_weights(config, card, dtype, on_stage)
    started = time.monotonic()
    on_stage("warming", 0.0)
    capacity = _capacity(config, card, model, dtype)
    core = _core(config, model, tokenizer, capacity, dtype, observers)
    warm_up(core.runner)
    _log.info("init engine (profile, create kv cache, warmup model) took %.2f s", time.monotonic() - started)
    _log.info("Supported tasks: ['generate']")
    limits = AdmissionLimits(capacity.max_model_len, model.config.vocab_size, config.max_logprobs)
    return LoadedEngine(core, card, tokenizer, limits, capacity, default_sampling(config, card))


def _check_quantization(config: EngineConfig, card: ModelCard) -> None:
    """The checkpoint decides. A flag that says the same is fine, one that says otherwise is an error."""
    if config.quantization is None:
        return
    found = "gguf" if card.format == "gguf" else str((card.quantization or {}).get("quant_method", "none"))
    if config.quantization == found:
        _log.info("--quantization %s is what the checkpoint says already; the flag is not needed", found)
        return
    if found == "none":
        raise NotBuiltError(
            f"--quantization {config.quantization} on an unquantized checkpoint is not built yet", param="quantization",
            fix="Leave the flag out.",
        )  # fmt: skip
    raise ConfigError(
        f"Quantization method specified in the model config ({found}) does not match the quantization method specified in the "
        f"`quantization` argument ({config.quantization})",
        param="quantization", fix="Leave --quantization out: the checkpoint says what it is.",
    )  # fmt: skip


def _load_weights(config: EngineConfig, card: ModelCard, dtype: torch.dtype, on_stage: OnStage) -> CausalLM:
    _log.info("Starting to load model %s...", config.model)
    started, before = time.monotonic(), process_rss()
    model = load_model(card, dtype, progress=lambda done, total: on_stage("loading", done / max(total, 1)))
    seconds = time.monotonic() - started
    _log.info("Loading weights took %.2f seconds", seconds)
    _log.info("Model loading took %.2f GiB memory and %.6f seconds", (process_rss() - before) / _GIB, seconds)
    return model


def _capacity(config: EngineConfig, card: ModelCard, model: CausalLM, dtype: torch.dtype) -> CapacityReport:
    shape = model.config.kv_shape
    budget = kv_budget(
        memory_budget(), resident_bytes=process_rss(),
        gpu_memory_utilization=config.gpu_memory_utilization, kv_cache_memory_bytes=config.kv_cache_memory_bytes,
    )  # fmt: skip
    report = fit(
        KvGeometry(shape.num_layers, shape.num_kv_heads, shape.head_dim), budget, weight_bytes=card.parameters * dtype.itemsize,
        kv_dtype_bytes=dtype.itemsize, block_size=config.block_size, max_model_len=config.max_model_len,
        context_length=card.context_length, num_blocks_override=config.num_gpu_blocks_override,
        allow_longer_context=os.environ.get("VLLM_ALLOW_LONG_MAX_MODEL_LEN", "0") == "1",
    )  # fmt: skip
    if not config.enable_chunked_prefill and config.max_num_batched_tokens < report.max_model_len:
        raise ConfigError(
            f"without chunked prefill a step must hold a whole prompt: max_num_batched_tokens ({config.max_num_batched_tokens}) is less "
            f"than max_model_len ({report.max_model_len})",
            param="max_num_batched_tokens", fix=f"Give --max-num-batched-tokens {report.max_model_len}, or leave chunked prefill on.",
        )  # fmt: skip
    _log.info("Using max model len %d", report.max_model_len)
    _log.info("Available KV cache memory: %.2f GiB", budget.nbytes / _GIB)
    _log.info("Capacity: %s", report.equation())
    _log.info(
        "CPU KV cache size: %s tokens, Maximum concurrency for %s tokens per request: %.2fx",
        f"{report.tokens:,}", f"{report.max_model_len:,}", report.max_concurrency,
    )  # fmt: skip
    return report


def _core(
    config: EngineConfig, model: CausalLM, tokenizer: Tokenizer, capacity: CapacityReport, dtype: torch.dtype, observers: Observers | None
) -> EngineCore:
    shape = model.config.kv_shape
    num_blocks = capacity.num_blocks + 1  # the null block
    storage = PagedKV(num_blocks, config.block_size, shape, dtype)
    manager = KVCacheManager(num_blocks, config.block_size, caching=config.enable_prefix_caching)
    limits = SchedulerLimits(
        config.max_num_batched_tokens, config.max_num_seqs, config.long_prefill_token_threshold,
        chunked_prefill=config.enable_chunked_prefill, policy=config.scheduling_policy,
    )  # fmt: skip
    sampler = Sampler(model.config.vocab_size, seed=config.seed, logprobs_mode=config.logprobs_mode)
    return EngineCore(Scheduler(limits, manager), ModelRunner(model, storage, config.block_size), sampler, tokenizer, observers)
