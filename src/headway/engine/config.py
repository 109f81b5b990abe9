"""EngineConfig: everything that shapes an engine, as one immutable record. Field names are the flags' names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headway.engine.load_format import check_load_format
from headway.errors import ConfigError
from headway.models.implementation import IMPLEMENTATIONS, Implementation

CHOICES = {
    "dtype": ("auto", "half", "float16", "bfloat16", "float", "float32"),
    "logprobs_mode": ("raw_logprobs", "raw_logits", "processed_logprobs", "processed_logits"),
    "model_impl": IMPLEMENTATIONS,
    "scheduling_policy": ("fcfs", "priority"),
    "tokenizer_mode": ("auto", "hf", "slow"),
}


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """Defaults are those for a CPU (`../docs/flags.md`). None means "decide when the model is known"."""

    model: str
    # model
    tokenizer: str | None = None
    tokenizer_mode: str = "auto"
    tokenizer_revision: str | None = None
    revision: str | None = None
    download_dir: str | None = None
    load_format: str = "auto"
    model_impl: Implementation = "auto"
    hf_config_path: str | None = None
    hf_overrides: Mapping[str, Any] = field(default_factory=dict)
    disable_sliding_window: bool = False
    dtype: str = "auto"
    quantization: str | None = None
    max_model_len: int | None = None  # -1 = the longest that fits the KV cache
    seed: int = 0
    served_model_name: tuple[str, ...] = ()
    generation_config: str = "auto"  # auto | vllm | a folder
    override_generation_config: Mapping[str, Any] = field(default_factory=dict)
    max_logprobs: int = 20
    logprobs_mode: str = "raw_logprobs"
    batch_invariant: bool = False
    logits_processors: tuple[str | type, ...] = ()  # package.module:Class, or the class itself
    accept_licence: tuple[str, ...] = ()
    # cache
    block_size: int = 16
    gpu_memory_utilization: float | None = None  # on a CPU: fraction of the memory limit
    kv_cache_memory_bytes: int | None = None
    num_gpu_blocks_override: int | None = None
    enable_prefix_caching: bool = True
    # scheduler
    max_num_seqs: int = 256
    max_num_batched_tokens: int = 2048
    enable_chunked_prefill: bool = True
    long_prefill_token_threshold: int = 0
    scheduling_policy: str = "fcfs"  # fcfs | priority
    scheduler_reserve_full_isl: bool = True
    watermark: float = 0.0
    prefill_schedule_interval: int = 1
    max_num_queued_reqs: int | None = None
    max_num_queued_tokens: int | None = None
    # watching
    disable_log_stats: bool = False
    log_stats_interval: float = 10.0
    otlp_traces_endpoint: str | None = None

    def __post_init__(self) -> None:
        for name, lowest in (
            ("block_size", 1),
            ("max_num_seqs", 1),
            ("max_num_batched_tokens", 1),
            ("long_prefill_token_threshold", 0),
            ("prefill_schedule_interval", 1),
            ("max_num_queued_reqs", 1),
            ("max_num_queued_tokens", 1),
            ("kv_cache_memory_bytes", 1),
            ("num_gpu_blocks_override", 1),
            ("max_logprobs", -1),
        ):
            value = getattr(self, name)
            if value is not None and not (_is_whole(value) and value >= lowest):
                raise _out_of_range(name, value, f"at least {lowest}")
        length, seed, share = self.max_model_len, self.seed, self.gpu_memory_utilization
        if length is not None and not (_is_whole(length) and (length == -1 or length >= 2)):
            raise _out_of_range("max_model_len", length, "at least 2, or -1 for what fits")
        if not (_is_whole(seed) and -(2**63) <= seed < 2**63):
            raise _out_of_range("seed", seed, "a 64-bit integer")
        if share is not None and not (isinstance(share, int | float) and 0 < share <= 1):
            raise _out_of_range("gpu_memory_utilization", share, "in (0, 1]")
        if not (isinstance(self.watermark, int | float) and 0 <= self.watermark < 1):
            raise _out_of_range("watermark", self.watermark, "in [0, 1)")
        if self.batch_invariant and self.logits_processors:
            raise ConfigError(
                "--batch-invariant and --logits-processors exclude each other: a processor sees all rows at once",
                param="logits_processors", fix="Leave one of them out.",
            )  # fmt: skip
        for name, allowed in CHOICES.items():
            if getattr(self, name) not in allowed:
                raise ConfigError(f"{name} must be one of {', '.join(allowed)}, got {getattr(self, name)!r}", param=name)

        check_load_format(self.load_format)
        for name in ("hf_overrides", "override_generation_config"):
            if not isinstance(getattr(self, name), Mapping):
                raise ConfigError(f"{name} must be a JSON object, got {type(getattr(self, name)).__name__}", param=name)

    @property
    def name(self) -> str:
        """The model name that answers carry."""
        return self.served_model_name[0] if self.served_model_name else self.model


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _out_of_range(name: str, value: object, expected: str) -> ConfigError:
    return ConfigError(f"{name} must be {expected}, got {value!r}", param=name)
