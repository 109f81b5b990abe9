"""From a loaded model and the memory it may use to an engine core: storage, block pool, scheduler, runner, sampler."""

from __future__ import annotations

import torch

from headway.artifacts.tokenizer import Tokenizer
from headway.capacity.fit import CapacityReport
from headway.engine.batch_invariance import Arithmetic
from headway.engine.config import EngineConfig
from headway.engine.core import EngineCore, Observers
from headway.engine.images.attachment import Images
from headway.engine.logits_processor import LogitsProcessor
from headway.engine.lora.attachment import Lora
from headway.engine.model_runner import ModelRunner
from headway.engine.operations.kv_offload import second_tier
from headway.engine.processor_rows import ProcessorRows
from headway.engine.scheduler import Scheduler, SchedulerLimits
from headway.engine.speculation.start import make_drafter
from headway.engine.step_records import wanted_recorder
from headway.kvcache.manager import KVCacheManager
from headway.models.causal_lm import CausalLM
from headway.models.recorded_forward import StepLimits


def assemble(
    config: EngineConfig, model: CausalLM, tokenizer: Tokenizer, capacity: CapacityReport, kept: torch.dtype,
    parts: Arithmetic, processors: list[LogitsProcessor], observers: Observers | None, lora: Lora | None = None,
    images: Images | None = None,
) -> EngineCore:  # fmt: skip
    """Reserves the KV cache, in dtype `kept`; its pages are committed when they are first written."""
    num_blocks = capacity.num_blocks + 1  # the null block
    storage = model.storage(num_blocks, config.block_size, kept)
    manager = KVCacheManager(num_blocks, config.block_size, caching=config.enable_prefix_caching)
    if (tier := second_tier(config, storage)) is not None:
        manager.keep_evicted(tier)
    limits = SchedulerLimits(
        config.max_num_batched_tokens, config.max_num_seqs, config.long_prefill_token_threshold,
        chunked_prefill=config.enable_chunked_prefill, policy=config.scheduling_policy,
        reserve_full_prompt=config.scheduler_reserve_full_isl, watermark=config.watermark,
        prefill_interval=config.prefill_schedule_interval,
    )  # fmt: skip
    sampling = parts.kernels.sampling
    draws = parts.sampler(
        model.config.vocab_size, seed=config.seed, logprobs_mode=config.logprobs_mode,
        processors=ProcessorRows(processors) if processors else None, kernels=sampling,
    )  # fmt: skip
    forward = model.prepared(storage, StepLimits(config.max_num_batched_tokens, config.max_num_seqs, capacity.max_model_len))
    slots = steps = None
    if images is not None:
        forward = images.forward(forward, model.forward)
    if lora is not None:
        forward, slots, steps = lora.forward(forward, model.forward), lora.slots, lora.steps
    runner = ModelRunner(
        model, storage, config.block_size, known_tokens=tokenizer.vocab_size, forward=forward, kernels=sampling, adapters=steps,
        images=None if images is None else images.steps,
    )  # fmt: skip
    scheduler = Scheduler(limits, manager, slots)
    if images is not None and config.enable_chunked_prefill:
        scheduler.tiles = images.budget
    scheduler.drafter = make_drafter(config, runner, draws, tokenizer, capacity.max_model_len)
    core = EngineCore(scheduler, runner, draws, tokenizer, observers)
    core.recorder = wanted_recorder()
    return core
