"""Traces of requests for engines that run inside somebody's program; a server has its own end and sends them itself."""

from __future__ import annotations

import atexit
from dataclasses import replace

from headway.engine.config import EngineConfig
from headway.engine.core import Observers
from headway.telemetry.stats import RequestStats
from headway.telemetry.tracing import RequestTracer

_LAST_SPANS_SECONDS = 2.0  # that the end of the program waits for the collector


def traced(config: EngineConfig, observers: Observers | None = None) -> Observers:
    """`observers`, and with `otlp_traces_endpoint` a tracer beside them. Raises ConfigError."""
    given = observers or Observers()
    if config.otlp_traces_endpoint is None:
        return given
    tracer = RequestTracer(config.otlp_traces_endpoint, config.name)
    atexit.register(tracer.close, _LAST_SPANS_SECONDS)

    def on_request(request: RequestStats) -> None:
        given.on_request(request)
        tracer.on_request(request)

    return replace(given, on_request=on_request)
