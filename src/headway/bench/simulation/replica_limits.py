"""ReplicaLimits: the flags of an engine that its scheduler obeys."""

from __future__ import annotations

from dataclasses import dataclass

from headway.errors import ConfigError


@dataclass(frozen=True, slots=True)
class ReplicaLimits:
    """Names, meanings and defaults as of the flags of `headway serve`. `num_blocks` are usable blocks of `block_size` tokens."""

    num_blocks: int
    block_size: int = 16
    max_num_batched_tokens: int = 2048
    max_num_seqs: int = 256
    enable_prefix_caching: bool = True
    enable_chunked_prefill: bool = True
    long_prefill_token_threshold: int = 0
    scheduler_reserve_full_isl: bool = True
    watermark: float = 0.0
    prefill_schedule_interval: int = 1

    def __post_init__(self) -> None:
        for name in ("num_blocks", "block_size", "max_num_batched_tokens", "max_num_seqs", "prefill_schedule_interval"):
            if not 1 <= getattr(self, name) <= 1 << 40:
                raise ConfigError(f"--{name.replace('_', '-')} must be at least 1, found {getattr(self, name)}", param=name)
        if self.max_num_seqs > self.max_num_batched_tokens:
            raise ConfigError(
                f"--max-num-batched-tokens ({self.max_num_batched_tokens}) must be at least --max-num-seqs ({self.max_num_seqs})",
                param="max_num_batched_tokens",
            )
        if not 0 <= self.watermark < 1 or self.long_prefill_token_threshold < 0:
            raise ConfigError("--watermark must be from 0 to below 1, --long-prefill-token-threshold at least 0", param="watermark")
