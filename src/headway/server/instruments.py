"""What watches the engine of a server process besides metrics and log: traces of requests, a profile of functions."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass

from headway.artifacts.cache_folders import headway_cache
from headway.engine.config import EngineConfig
from headway.server.settings import ServerSettings
from headway.telemetry.function_trace import FunctionTrace
from headway.telemetry.stats import RequestStats
from headway.telemetry.tracing import RequestTracer

_LAST_SPANS_SECONDS = 2.0  # that the end of the process waits for the collector of traces


@dataclass(frozen=True, slots=True)
class Instruments:
    tracer: RequestTracer | None = None
    functions: FunctionTrace | None = None

    def on_request(self, request: RequestStats) -> None:
        if self.tracer is not None:
            self.tracer.on_request(request)

    def around_thread(self) -> contextlib.AbstractContextManager[None]:
        """Entered on the engine's thread, around all of its work."""
        return self.functions.thread() if self.functions is not None else contextlib.nullcontext()


@contextlib.contextmanager
def instruments(config: EngineConfig, settings: ServerSettings, model_name: str) -> Iterator[Instruments]:
    """Those that were asked for; at the end they hand over what they have. Raises ConfigError."""
    endpoint = config.otlp_traces_endpoint
    tracer = RequestTracer(endpoint, model_name) if endpoint is not None else None
    functions = None
    if settings.trace_function:
        stamp = time.strftime("%Y%m%d-%H%M%S")
        functions = FunctionTrace(headway_cache() / "traces" / f"functions-{stamp}-{os.getpid()}")
        functions.announce()
    try:
        yield Instruments(tracer, functions)
    finally:
        if functions is not None:
            functions.write()
        if tracer is not None:
            tracer.close(_LAST_SPANS_SECONDS)
