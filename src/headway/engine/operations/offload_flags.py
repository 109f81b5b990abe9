"""Which of the flags of KV offloading go together."""

from __future__ import annotations

from typing import Protocol

from headway.errors import ConfigError


class OffloadFlags(Protocol):
    @property
    def enable_prefix_caching(self) -> bool: ...

    @property
    def kv_offloading_size(self) -> float | None: ...

    @property
    def kv_offloading_path(self) -> str | None: ...


def check_offload(flags: OffloadFlags) -> None:
    """Raises ConfigError: blocks are found by the hashes of the prefix cache, and a folder alone says nothing of a size."""
    if flags.kv_offloading_size is not None and not flags.enable_prefix_caching:
        raise ConfigError(
            "--kv-offloading-size needs the prefix cache, by whose hashes blocks are found again", param="kv_offloading_size",
            fix="Leave --no-enable-prefix-caching out.",
        )  # fmt: skip
    if flags.kv_offloading_path is not None and flags.kv_offloading_size is None:
        raise ConfigError("--kv-offloading-path needs --kv-offloading-size", param="kv_offloading_path", fix="Give a size in GiB.")
