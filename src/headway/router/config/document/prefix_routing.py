"""Prefix-aware placement in a configuration document: additions of Headway."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from headway.router.config.document.node import Node
from headway.router.config.duration import PositiveDuration

Address = Annotated[str, Field(pattern=r"^(tcp://(\[[0-9A-Fa-f:.]+\]|[^\s:/*]+):[0-9]{1,5}|ipc://\S+)$")]


class KVEventSource(Node):
    """Where a backend publishes events of its KV cache (`--kv-events-config` of the engine): ZeroMQ addresses such as tcp://10.0.0.1:5557, never
    with `*`. Without `replay_endpoint`, what is missed is not asked for again: the index of the backend begins anew."""

    endpoint: Address
    replay_endpoint: Address | None = None
    topic: str = Field(default="", max_length=256)


class PrefixRoutingSettings(Node):
    """Requests go to the backend that holds the longest beginning of their prompt, if that is at least `least_share` of it, and while the
    backend has at most `most_ahead` more requests under way (for its weight) than the least busy one. `tokenize_timeout` is how long the
    tokens of a prompt are waited for, `max_blocks` are remembered for each backend, `stale_after` is how long they are believed without a connection."""

    least_share: float = Field(default=0.25, gt=0, le=1)
    most_ahead: int = Field(default=8, ge=0)
    tokenize_timeout: PositiveDuration = "250ms"
    max_blocks: int = Field(default=262_144, ge=1, le=100_000_000)
    stale_after: PositiveDuration = "30s"
