"""How much may wait in front of an engine."""

from __future__ import annotations

from collections.abc import Iterable

from headway.engine.config import EngineConfig
from headway.engine.sequence import Request
from headway.errors import QueueFullError


def require_room(config: EngineConfig, requests: Iterable[Request]) -> None:
    """Raises QueueFullError when as much is waiting as may wait. Waiting = not scheduled yet, in the engine's core or before it."""
    if config.max_num_queued_reqs is None and config.max_num_queued_tokens is None:
        return
    waiting = [len(request.prompt_token_ids) for request in requests if request.sequences[0].num_cached < 0]
    for name, limit, found, unit in (
        ("max_num_queued_reqs", config.max_num_queued_reqs, len(waiting), "requests"),
        ("max_num_queued_tokens", config.max_num_queued_tokens, sum(waiting), "prompt tokens"),
    ):
        if limit is not None and found >= limit:
            raise QueueFullError(
                f"the queue is full: {found} {unit} wait, the limit is {limit}", param=name, fix="Retry later or elsewhere."
            )
