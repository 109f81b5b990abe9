"""ServedEngine: one engine behind the names of a server, and what the server derived from it."""

from __future__ import annotations

import hashlib
from asyncio import Future
from collections.abc import Mapping

from headway import __version__
from headway.decisions.planner import DecisionsPlanner
from headway.server.engine_port import EnginePort
from headway.server.lora.served_adapters import ServedAdapters
from headway.server.token_pieces import TokenPieces


class ServedEngine:
    """`requests`: HTTP requests that began with this engine and have not ended. They keep it to their end, whatever the server serves by
    then: their tokens are its tokens."""

    def __init__(self, engine: EnginePort, fingerprint_mode: str):
        self.engine = engine
        self.fingerprint = fingerprint(fingerprint_mode, engine)
        self.adapters = ServedAdapters(engine)
        self.requests = 0
        self.told: set[str] = set()  # what the log has said of it and need not say again
        self.decider: Future[DecisionsPlanner] | None = None  # begun at the first question
        self._pieces: TokenPieces | None = None

    @property
    def pieces(self) -> TokenPieces:
        """Texts and bytes of single tokens; known once the model is loaded."""
        if self._pieces is None:
            self._pieces = TokenPieces(self.engine.tokenizer)
        return self._pieces


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
