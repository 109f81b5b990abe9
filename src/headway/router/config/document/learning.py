"""Learning settings of a configuration document: of them only protection, which keeps sessions with their model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Literal

from pydantic import Field

from headway.router.config.document.node import Node
from headway.router.config.document.services import ResponseAPIRedis

_NOT_LEARNED = "learning from outcomes is not built; use algorithm.multi_factor or the trained selectors (knn, kmeans, svm, mlp)"


class ProtectionRedis(ResponseAPIRedis):
    key_prefix: str = "headway:sessions:"


class ProtectionHeaders(Node):
    session: str = Field(default="x-session-id", min_length=1)
    conversation: str = Field(default="x-conversation-id", min_length=1)


class ProtectionIdentity(Node):
    headers: ProtectionHeaders = ProtectionHeaders()


class ProtectionTuning(Node):
    """Once a session has had `min_turns_before_switch` turns, another model takes over if its score is higher by more than `switch_margin` times
    `stability_weight`. A session that was silent for `idle_timeout_seconds` is a new one."""

    idle_timeout_seconds: int = Field(default=300, ge=1)
    min_turns_before_switch: int = Field(default=1, ge=0)
    switch_margin: float = Field(default=0.05, ge=0)
    stability_weight: float = Field(default=1.0, ge=0)


class Protection(Node):
    """`scope` says which header tells what belongs together. With `store_backend: redis`, an addition of Headway, all routers know the same model."""

    enabled: bool = False
    scope: Literal["conversation", "session"] = "conversation"
    identity: ProtectionIdentity = ProtectionIdentity()
    tuning: ProtectionTuning = ProtectionTuning()
    store_backend: Literal["memory", "redis"] = "memory"
    redis: ProtectionRedis | None = None

    @property
    def header(self) -> str:
        headers = self.identity.headers
        return (headers.session if self.scope == "session" else headers.conversation).lower()


class Learning(Node):
    absent: ClassVar[Mapping[str, str]] = {"adaptation": _NOT_LEARNED, "adaptations": _NOT_LEARNED}

    enabled: bool = False
    protection: Protection | None = None


class DecisionAdaptations(Node):
    """`bypass`: the sessions of this decision keep no model."""

    mode: Literal["apply", "bypass"] = "apply"
