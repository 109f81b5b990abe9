"""ServerState: what all handlers of one application share."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from typing import cast

from fastapi import Request

from headway import __version__
from headway.artifacts.template_source import template_text
from headway.errors import EngineDeadError, LoadingError, NotFoundError
from headway.http.shutdown import Ending
from headway.server.engine_port import EnginePort, MetricsPort
from headway.server.progress import ProgressWatch
from headway.server.settings import ServerSettings
from headway.server.token_pieces import TokenPieces
from headway.wire.limits import BodyLimits


class ServerState(Ending):
    """Lives on one event loop."""

    def __init__(self, engine: EnginePort, settings: ServerSettings, metrics: MetricsPort):
        super().__init__()
        self.engine = engine
        self.settings = settings
        self.metrics = metrics
        self.created = int(time.time())
        self.progress = ProgressWatch(settings.health_stall_seconds)
        self.names: tuple[str, ...] = engine.config.served_model_name or (engine.config.model,)
        self.limits = BodyLimits(settings.max_request_bytes, settings.max_json_depth)
        self.chat_template = template_text(settings.chat_template)
        self.fingerprint = fingerprint(settings.fingerprint_mode, engine)
        self._pieces: TokenPieces | None = None

    @property
    def pieces(self) -> TokenPieces:
        """Texts and bytes of single tokens; known once the model is loaded."""
        if self._pieces is None:
            self._pieces = TokenPieces(self.engine.tokenizer)
        return self._pieces

    def require_ready(self) -> None:
        """Raises LoadingError, EngineDeadError, or the error of a server that shuts down."""
        self.require_open()
        status = self.engine.status
        if status.stage == "ready":
            return
        if status.stage in ("dead", "stopped"):
            raise EngineDeadError(f"The engine is {status.stage}: {status.error or 'no reason given'}")
        raise LoadingError(
            f"The model is still loading (stage {status.stage}, {status.progress:.0%}). GET /health tells when it is ready"
        )

    def model_named(self, name: str | None) -> str:
        """The name that the answer carries: the first one, as in vLLM, whichever was asked for.

        Raises NotFoundError unless `name` is absent or one of the served names.
        """
        if name and name not in self.names:
            shown = name if len(name) <= 200 else name[:197] + "..."
            raise NotFoundError(
                f"The model {shown!r} does not exist here. Served: {', '.join(self.names)}",
                reason="model_not_found",
                param="model",
            )
        return self.names[0]


def state_of(request: Request) -> ServerState:
    return cast(ServerState, request.app.state.headway)


def fingerprint(mode: str, engine: EnginePort) -> str | None:
    """Names version and model settings in one word, so that a client sees when answers may change."""
    config = engine.config
    shaping: Mapping[str, object] = {
        "version": __version__,
        "model": config.model,
        "revision": config.revision,
        "dtype": config.dtype,
        "quantization": config.quantization,
    }
    digest = hashlib.sha256(repr(shaping).encode()).hexdigest()[:8]
    return {"full": f"headway-{__version__}-{digest}", "hash": digest, "none": None}[mode]
