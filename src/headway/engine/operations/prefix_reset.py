"""Forgetting what the KV cache holds, between two steps."""

from __future__ import annotations

from headway.engine.core import EngineCore


def reset_prefix_cache(core: EngineCore, *, running: bool = False, offloaded: bool = False) -> bool:
    """Forget all cached prefixes, with `offloaded` also the copies outside of the pool. False, and no change, while sequences hold blocks;
    with `running` they give them back first, and compute them again later."""
    if running:
        restart_running(core)
    return core.scheduler.kv.reset(offloaded=offloaded)


def restart_running(core: EngineCore) -> None:
    """All sequences go back to the queue, in their order."""
    for sequence in reversed(list(core.scheduler.running)):
        core.scheduler.restart(sequence)
