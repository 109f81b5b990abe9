"""ServerState: what all handlers of one application share."""

from __future__ import annotations

import contextlib
import time
import weakref
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TYPE_CHECKING, cast

from fastapi import Request

from headway.artifacts.template_source import template_text
from headway.errors import EngineDeadError, LoadingError, NotFoundError, RestartingError
from headway.http.shutdown import Ending
from headway.server.answer_parsers import answer_parsers
from headway.server.engine_port import EnginePort, MetricsPort
from headway.server.progress import ProgressWatch
from headway.server.responses.shelf import ResponseShelf
from headway.server.served_engine import ServedEngine
from headway.server.settings import ServerSettings
from headway.server.token_pieces import TokenPieces
from headway.wire.limits import BodyLimits

if TYPE_CHECKING:
    from headway.engine.lora.adapter import Adapter
    from headway.server.swap.model_swap import ModelSwap

# Weak, since contexts live on in timers that were cancelled, and an engine that is to end must not.
_began_with: ContextVar[weakref.ref[ServedEngine] | None] = ContextVar("_began_with", default=None)


class ServerState(Ending):
    """Lives on one event loop."""

    def __init__(self, engine: EnginePort, settings: ServerSettings, metrics: MetricsPort):
        super().__init__()
        self.settings = settings
        self.serving = ServedEngine(engine, settings.fingerprint_mode)
        self.swap: ModelSwap | None = None  # how another model comes; None where nobody can start one
        self.metrics = metrics
        self.created = int(time.time())
        self.progress = ProgressWatch(settings.health_stall_seconds)
        self.names: tuple[str, ...] = engine.config.served_model_name or (engine.config.model,)
        self.limits = BodyLimits(settings.max_request_bytes, settings.max_json_depth)
        self.chat_template = template_text(settings.chat_template)
        self.parsers = answer_parsers(settings)
        self.responses = ResponseShelf() if settings.enable_responses_api_store else None

    @property
    def pieces(self) -> TokenPieces:
        """Texts and bytes of single tokens; known once the model is loaded."""
        return self.served.pieces

    @property
    def fingerprint(self) -> str | None:
        return self.served.fingerprint

    @property
    def served(self) -> ServedEngine:
        """Inside of a request the engine that it began with, else the one that requests begin with now."""
        began_with = _began_with.get()
        return (None if began_with is None else began_with()) or self.serving

    @property
    def engine(self) -> EnginePort:
        """Of `served`."""
        return self.served.engine

    def serve(self, engine: EnginePort) -> ServedEngine:
        """Requests begin with `engine` from now on; returns what they began with before."""
        before, self.serving = self.serving, ServedEngine(engine, self.settings.fingerprint_mode)
        return before

    @contextlib.contextmanager
    def one_engine(self) -> Iterator[None]:
        """All that is done inside, by whatever tasks and threads, is done with one engine."""
        served = self.serving
        served.requests += 1
        token = _began_with.set(weakref.ref(served))
        try:
            yield
        finally:
            _began_with.reset(token)
            served.requests -= 1

    def require_ready(self) -> None:
        """Raises LoadingError, RestartingError, EngineDeadError, or the error of a server that shuts down."""
        self.require_open()
        status = self.engine.status
        if status.stage == "ready":
            return
        if status.stage in ("dead", "stopped"):
            raise EngineDeadError(f"The engine is {status.stage}: {status.error or 'no reason given'}")
        if status.stage == "restarting":
            raise RestartingError(status.error or "The engine starts again")
        raise LoadingError(
            f"The model is still loading (stage {status.stage}, {status.progress:.0%}). GET /health tells when it is ready"
        )

    @property
    def model_names(self) -> tuple[str, ...]:
        """All that requests may ask for: names of the model, then adapters."""
        return (*self.names, *self.served.adapters.by_name)

    def model_named(self, name: str | None) -> str:
        """The name that the answer carries: that of the adapter that was asked for, else the first one, as in vLLM, whichever was asked for.

        Raises NotFoundError unless `name` is absent, or one of the served names or adapters.
        """
        if name is not None and name in self.served.adapters.by_name:
            return name
        if name and name not in self.names:
            shown = name if len(name) <= 200 else name[:197] + "..."
            raise NotFoundError(
                f"The model {shown!r} does not exist here. Served: {', '.join(self.model_names)}",
                reason="model_not_found",
                param="model",
            )
        return self.names[0]

    def adapter_named(self, name: str | None) -> Adapter | None:
        """What changes the model for requests that ask for `name`; None for the model as it is."""
        return None if name is None else self.served.adapters.by_name.get(name)


def state_of(request: Request) -> ServerState:
    return cast(ServerState, request.app.state.headway)
