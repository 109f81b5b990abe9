"""What the LoRA flags may say, apart and together."""

from __future__ import annotations

from typing import Final, Protocol

from headway.errors import ConfigError

MAX_RANKS: Final = (1, 8, 16, 32, 64, 128, 256, 320, 512)  # as vLLM
LORA_DTYPES: Final = ("auto", "bfloat16", "float32")  # auto = that of the model


class LoraFlags(Protocol):
    """EngineConfig."""

    @property
    def enable_lora(self) -> bool: ...
    @property
    def max_loras(self) -> int: ...
    @property
    def max_lora_rank(self) -> int: ...
    @property
    def max_cpu_loras(self) -> int | None: ...
    @property
    def batch_invariant(self) -> bool: ...


def check_lora(flags: LoraFlags) -> None:
    """Raises ConfigError for values that vLLM does not take either, and for flags that exclude each other."""
    if flags.max_lora_rank not in MAX_RANKS:
        raise ConfigError(
            f"max_lora_rank must be one of {', '.join(map(str, MAX_RANKS))}, got {flags.max_lora_rank!r:.40}", param="max_lora_rank",
            fix="Use the next one above the rank of your adapters.",
        )  # fmt: skip
    if flags.max_cpu_loras is not None and flags.max_cpu_loras < flags.max_loras:
        raise ConfigError(
            f"max_cpu_loras ({flags.max_cpu_loras}) must be >= max_loras ({flags.max_loras}): what runs is in memory", param="max_cpu_loras"
        )
    if flags.enable_lora and flags.batch_invariant:
        raise ConfigError(
            "--enable-lora and --batch-invariant exclude each other: rows of one adapter are multiplied together, as many as there are",
            param="enable_lora", fix="Leave one of them out.",
        )  # fmt: skip
