"""PublicRequest: one request to a public address whose sender is known."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.types import Receive, Scope, Send

from headway.router.generation.generation import Generation
from headway.router.listener.front import Front, ListenerRules
from headway.router.listener.head import Caller


@dataclass(frozen=True, slots=True)
class PublicRequest:
    """`generation` is kept open for it until its answer has ended. `began` is in seconds of `time.perf_counter`."""

    scope: Scope
    receive: Receive
    send: Send
    generation: Generation
    front: Front
    rules: ListenerRules
    caller: Caller
    began: float

    @property
    def path(self) -> str:
        return str(self.scope["path"])

    @property
    def method(self) -> str:
        return str(self.scope["method"])
