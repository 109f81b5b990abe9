"""Answers of the routes that operators and balancers use."""

from __future__ import annotations

from typing import NotRequired

from typing_extensions import TypedDict


class HealthAnswer(TypedDict):
    """`status`: ok, asleep, paused, loading, stalled, stopping, dead or stopped; the rest as far as it is known in that state."""

    status: str
    stage: NotRequired[str]
    progress: NotRequired[float]
    reason: NotRequired[str]
    message: NotRequired[str]
    steps: NotRequired[int]
    still_seconds: NotRequired[float]
    running: NotRequired[int]
    waiting: NotRequired[int]


class VersionAnswer(TypedDict):
    version: str


class LoadAnswer(TypedDict):
    """API requests in flight."""

    server_load: int


class ResetAnswer(TypedDict):
    """`reset`: whether the prefix cache is empty now."""

    reset: bool


class KVEventSource(TypedDict):
    """ZeroMQ addresses of one publisher of KV events, as the operator gave them."""

    data_parallel_rank: int
    endpoint: str
    replay_endpoint: str | None
    topic: str
