"""How one model's requests are queued, batched and cached: what its scheduler is told when it starts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ExecutionSettings:
    """`share_forwards` is what the batch probe found: whether rows of different requests may run in one forward pass.

    `max_queue` counts unanswered jobs, `max_queued_tokens` their tokens; `max_batch_tokens` and `max_num_seqs` bound one
    forward pass (None: no bound on rows); `result_cache_entries` 0 switches the cache off.
    """

    enable_shared_context: bool = False
    batch_window_ms: float = 2.0
    max_num_seqs: int | None = None
    max_batch_tokens: int = 65_536
    max_queue: int = 256
    max_queued_tokens: int = 4_194_304
    result_cache_entries: int = 16_384
    share_forwards: bool = True
