"""Sleep: a core that makes no steps gives its memory back, and gets it again."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from headway.artifacts.cache_folders import headway_cache
from headway.capacity.byte_text import byte_text
from headway.engine.config import EngineConfig
from headway.engine.core import EngineCore
from headway.engine.operations.parked_weights import ParkedWeights, discard, park
from headway.engine.operations.prefix_reset import reset_prefix_cache
from headway.errors import ConfigError, NotBuiltError, RequestError
from headway.host.heap import release_free_memory
from headway.models.held_bytes import held_ranges

_log = logging.getLogger(__name__)
LEVELS: Final = (1, 2)
TAGS: Final = ("weights", "kv_cache")


@dataclass(slots=True)
class Sleep:
    """`parked` are the weights of level 1; at level 2 they have to be loaded again. `missing` are the parts that are not back yet."""

    level: int
    parked: ParkedWeights | None
    missing: set[str] = field(default_factory=lambda: set(TAGS))


def fall_asleep(core: EngineCore, level: int) -> Sleep:
    """Give the memory of weights and KV cache back to the system. No sequence may run; those that wait may go on waiting.

    Raises NotBuiltError on other devices than CPUs, CapacityError, OSError; then everything is as before, but that cached prefixes may be forgotten.
    """
    if core.runner.kv.layers[0].device.type != "cpu":
        raise NotBuiltError("sleep mode is built for CPUs only", param="enable_sleep_mode")
    if not reset_prefix_cache(core, offloaded=True):
        raise RequestError("the engine cannot sleep while sequences hold KV blocks")
    weights = held_ranges(core.runner.model)
    parked = park(weights, headway_cache() / "sleep") if level == 1 else None
    given = discard(weights) if parked is None else parked.nbytes
    core.runner.kv.release()
    release_free_memory()
    _log.info("Sleeping at level %d: weights of %s left memory, the KV cache is empty", level, byte_text(given))
    return Sleep(level, parked)


def bring_back(sleep: Sleep, tags: Sequence[str], reload: Callable[[], None]) -> bool:
    """Bring the parts named by `tags` back, weights of level 2 by `reload`; True when all are. Raises whatever loading raises, and may be
    called again then."""
    if "weights" in sleep.missing.intersection(tags):
        if sleep.parked is None:
            reload()
        else:
            sleep.parked.bring_back()
    sleep.missing.difference_update(tags)
    return not sleep.missing


def require_sleep_mode(config: EngineConfig, level: int) -> None:
    """Raises ConfigError without --enable-sleep-mode, RequestError for a level that is not there."""
    if not config.enable_sleep_mode:
        raise ConfigError(
            "this engine was started without sleep mode", reason="sleep_mode_disabled", param="enable_sleep_mode", fix="Start it with --enable-sleep-mode."
        )
    if level not in LEVELS:
        raise RequestError(f"level must be 1 (weights are kept) or 2 (weights are loaded again), got {level}", param="level")


def check_tags(tags: Sequence[str]) -> None:
    """Raises RequestError for parts that no sleep takes away."""
    unknown = sorted(set(tags) - {*TAGS, "scheduling"})
    if unknown:
        raise RequestError(f"tags must be among {', '.join(TAGS)}, got {unknown[0]!r:.100}", param="tags")
