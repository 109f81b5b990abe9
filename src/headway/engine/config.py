"""EngineConfig: everything that shapes an engine, as one immutable record. Field names are the flags' names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headway.engine.images.limits import images_per_prompt
from headway.engine.kv_events.settings import check_kv_events
from headway.engine.kv_transfer.settings import TransferSettings, transfer_settings
from headway.engine.load_format import check_load_format
from headway.engine.lora.options import LORA_DTYPES, check_lora
from headway.engine.operations.offload_flags import check_offload
from headway.engine.operations.profiler_config import check_profiler_config
from headway.engine.pooling.pooler_config import read_pooler_config
from headway.engine.served_names import check_served_names
from headway.engine.speculation.settings import MOST_TOKENS, SpeculationSettings, speculation_settings
from headway.engine.structured.config import structured_config
from headway.errors import ConfigError
from headway.flags.span import Span, whole
from headway.models.implementation import IMPLEMENTATIONS, Implementation

CHOICES = {
    "convert": ("auto", "none", "embed", "classify"),
    "distributed_executor_backend": ("mp", "uni"),
    "dtype": ("auto", "half", "float16", "bfloat16", "float", "float32"),
    "kv_cache_dtype": ("auto", "int8"),
    "kv_offloading_backend": ("native",),
    "lora_dtype": LORA_DTYPES,
    "logprobs_mode": ("raw_logprobs", "raw_logits", "processed_logprobs", "processed_logits"),
    "model_impl": IMPLEMENTATIONS,
    "runner": ("auto", "generate", "pooling"),
    "scheduling_policy": ("fcfs", "priority"),
    "tokenizer_mode": ("auto", "hf", "slow"),
}
SPANS = {
    "block_size": whole(1),
    "distributed_timeout_seconds": Span(1),
    "gpu_memory_utilization": Span(0, 1, above=True),
    "kv_cache_memory_bytes": whole(1),
    "kv_offloading_size": Span(0, above=True),
    "log_stats_interval": Span(0, above=True),
    "long_prefill_token_threshold": whole(0),
    "max_cpu_loras": whole(1),
    "max_logprobs": whole(0, also=-1),
    "max_lora_rank": whole(1, 512),
    "max_loras": whole(1),
    "max_model_len": whole(2, also=-1),
    "max_num_batched_tokens": whole(1),
    "max_num_queued_reqs": whole(1),
    "max_num_queued_tokens": whole(1),
    "master_port": whole(1, 65535),
    "max_num_seqs": whole(1),
    "nnodes": whole(1, 1024),
    "node_rank": whole(0),
    "num_gpu_blocks_override": whole(1),
    "pipeline_parallel_size": whole(1, 1024),
    "prefill_schedule_interval": whole(1),
    "seed": whole(-(2**63), 2**63 - 1),
    "spec_tokens": whole(1, MOST_TOKENS),
    "tensor_parallel_size": whole(1, 1024),
    "watermark": Span(0, 1, below=True),
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
    runner: str = "auto"  # auto | generate | pooling
    convert: str = "auto"  # auto | none | embed | classify
    pooler_config: Mapping[str, Any] = field(default_factory=dict)
    # cache
    block_size: int = 16
    gpu_memory_utilization: float | None = None  # on a CPU: fraction of the memory limit
    kv_cache_memory_bytes: int | None = None
    kv_cache_dtype: str = "auto"  # auto = that of the model
    num_gpu_blocks_override: int | None = None
    enable_prefix_caching: bool = True
    kv_offloading_size: float | None = None  # GiB
    kv_offloading_backend: str = "native"
    kv_offloading_path: str | None = None  # a folder; None = memory
    kv_events_config: Mapping[str, Any] = field(default_factory=dict)
    kv_transfer_config: Mapping[str, Any] = field(default_factory=dict)
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
    # several processes
    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    nnodes: int = 1
    node_rank: int = 0
    master_addr: str = "127.0.0.1"
    master_port: int = 29501
    distributed_executor_backend: str | None = None  # mp | uni; None = mp where there are several ranks
    distributed_timeout_seconds: float = 60.0  # after so much silence a rank has failed
    # LoRA
    enable_lora: bool = False
    max_loras: int = 1  # different ones in a step
    max_lora_rank: int = 16
    max_cpu_loras: int | None = None  # in memory; None = max_loras
    lora_dtype: str = "auto"  # auto = that of the model
    # images
    limit_mm_per_prompt: Mapping[str, Any] = field(default_factory=dict)  # {"image": n}
    mm_processor_kwargs: Mapping[str, Any] = field(default_factory=dict)
    # speculation
    speculative_config: Mapping[str, Any] = field(default_factory=dict)
    spec_method: str | None = None  # these three are short forms
    spec_model: str | None = None
    spec_tokens: int | None = None
    # watching
    disable_log_stats: bool = False
    log_stats_interval: float = 10.0
    otlp_traces_endpoint: str | None = None
    # operations
    enable_sleep_mode: bool = False
    profiler_config: Mapping[str, Any] = field(default_factory=dict)
    # the form of answers
    structured_outputs_config: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, span in SPANS.items():
            value = getattr(self, name)
            if value is not None and value not in span:
                raise ConfigError(f"{name} must be {span}, got {value!r}", param=name)
        if self.batch_invariant and self.logits_processors:
            raise ConfigError(
                "--batch-invariant and --logits-processors exclude each other: a processor sees all rows at once",
                param="logits_processors", fix="Leave one of them out.",
            )  # fmt: skip
        if self.speculation is not None and self.logits_processors:
            raise ConfigError(
                "--speculative-config and --logits-processors exclude each other: a processor knows each sequence by one row, and drafts have several",
                param="logits_processors", fix="Leave one of them out.",
            )  # fmt: skip
        for name, allowed in CHOICES.items():
            if getattr(self, name) is not None and getattr(self, name) not in allowed:
                raise ConfigError(f"{name} must be one of {', '.join(allowed)}, got {getattr(self, name)!r}", param=name)

        check_served_names(self.served_model_name)
        check_load_format(self.load_format)
        check_lora(self)
        for name in ("hf_overrides", "override_generation_config", "profiler_config", "pooler_config", "structured_outputs_config", "kv_transfer_config",
                     "limit_mm_per_prompt", "mm_processor_kwargs"):  # fmt: skip
            if not isinstance(getattr(self, name), Mapping):
                raise ConfigError(f"{name} must be a JSON object, got {type(getattr(self, name)).__name__}", param=name)
        read_pooler_config(self.pooler_config)
        images_per_prompt(self.limit_mm_per_prompt)
        check_profiler_config(self.profiler_config)
        check_offload(self)
        transfer_settings(self)
        check_kv_events(self)
        structured_config(self.structured_outputs_config)

    @property
    def kv_transfer(self) -> TransferSettings | None:
        """How KV blocks move between engines; None = not at all."""
        return transfer_settings(self)

    @property
    def speculation(self) -> SpeculationSettings | None:
        """What the four settings ask for together."""
        return speculation_settings(self.speculative_config, self.spec_method, self.spec_model, self.spec_tokens)

    @property
    def name(self) -> str:
        """The model name that answers carry."""
        return self.served_model_name[0] if self.served_model_name else self.model
