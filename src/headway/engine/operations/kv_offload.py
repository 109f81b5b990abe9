"""From --kv-offloading-size and its companions to a second tier of the KV cache."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from typing import Final

from headway.capacity.byte_text import byte_text
from headway.engine.config import EngineConfig
from headway.errors import CapacityError, ConfigError, NotBuiltError
from headway.host.memory_budget import memory_budget
from headway.kernels.paged_kv import PagedKV
from headway.kvcache.offload.block_images import BlockImages
from headway.kvcache.offload.second_tier import SecondTier
from headway.kvcache.offload.slots import FileSlots, MemorySlots, Slots

_log = logging.getLogger(__name__)
_GIB: Final = 1 << 30


def second_tier(config: EngineConfig, kv: PagedKV) -> SecondTier | None:
    """None unless a size was given. Raises CapacityError when memory or disk has no room for it, NotBuiltError on
    other devices than CPUs, ConfigError for a folder that cannot be used."""
    if config.kv_offloading_size is None:
        return None
    if kv.layers[0].device.type != "cpu":
        raise NotBuiltError("KV offloading is built for CPUs only", param="kv_offloading_size", fix="Leave it out.")
    images = BlockImages(kv)
    size = int(config.kv_offloading_size * _GIB)
    count = size // images.nbytes
    if count < 1:
        raise CapacityError(
            f"--kv-offloading-size of {byte_text(size)} has no room for one block of {byte_text(images.nbytes)}", param="kv_offloading_size",
            fix=f"Give at least {images.nbytes / _GIB:.6f}.",
        )  # fmt: skip
    slots: Slots
    if config.kv_offloading_path is None:
        _require("memory", size, memory_budget().available - kv.nbytes, "Give less, or a folder with --kv-offloading-path.")
        slots, where = MemorySlots(count, images.nbytes), "in memory"
    else:
        slots, where = _in_folder(Path(config.kv_offloading_path).expanduser(), size, count, images.nbytes), "in a file"
    _log.info("KV offloading: up to %d evicted blocks (%s) are kept %s", count, byte_text(count * images.nbytes), where)
    return SecondTier(images, slots)


def _in_folder(folder: Path, size: int, count: int, nbytes: int) -> FileSlots:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _require("disk", size, shutil.disk_usage(folder).free, "Give less, or a folder on another disk.")
        return FileSlots(count, nbytes, folder)
    except OSError as error:
        raise ConfigError(f"--kv-offloading-path {folder} cannot be used: {error.strerror}", param="kv_offloading_path") from None


def _require(what: str, size: int, available: int, fix: str) -> None:
    if size > available:
        raise CapacityError(
            f"--kv-offloading-size asks for {byte_text(size)} of {what}, {byte_text(max(available, 0))} are available", param="kv_offloading_size", fix=fix
        )
