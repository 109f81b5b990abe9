"""Settings that are not built for a model that several ranks compute."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from headway.engine.config import EngineConfig
from headway.errors import ConfigError, NotBuiltError

_REFUSED: Final[Mapping[str, tuple[str, Callable[[EngineConfig], bool]]]] = {
    "batch_invariant": ("--batch-invariant", lambda config: config.batch_invariant),
    "enable_lora": ("LoRA adapters", lambda config: config.enable_lora),
    "enable_sleep_mode": ("sleep mode", lambda config: config.enable_sleep_mode),
    "kv_offloading_size": ("KV offloading", lambda config: config.kv_offloading_size is not None),
    "kv_transfer_config": ("KV transfer", lambda config: bool(config.kv_transfer_config)),
    "load_format": ("--load-format dummy", lambda config: config.load_format == "dummy"),
    "model_impl": ("--model-impl transformers", lambda config: config.model_impl == "transformers"),
}


def check_ranks(config: EngineConfig) -> None:
    """Raises NotBuiltError for what several ranks cannot do, ConfigError for a backend that contradicts the sizes."""
    world = config.tensor_parallel_size * config.pipeline_parallel_size
    if world == 1:
        return
    if config.distributed_executor_backend == "uni":
        raise ConfigError(
            f"--distributed-executor-backend uni has one rank, and --tensor-parallel-size times --pipeline-parallel-size is {world}",
            param="distributed_executor_backend", fix="Leave it out, or say mp.",
        )  # fmt: skip
    for name, (what, is_asked) in _REFUSED.items():
        if is_asked(config):
            raise NotBuiltError(f"{what} is not built for a model that {world} ranks compute together", param=name, fix="Leave one of the two out.")
