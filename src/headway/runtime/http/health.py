"""`GET /health` and `/health/live`: what the process and each model say of themselves."""

from __future__ import annotations

from typing import Any

from headway.runtime.served_model import Readiness, ServedModel, ServedModels, State

API_VERSION = "2.2.0"
_ON_THE_WAY: tuple[State, ...] = ("starting", "loading", "warming")


def process_readiness(models: ServedModels) -> Readiness:
    """Ready when all models are; else the earliest stage of those that are on their way; else failed when all failed,
    degraded when some did."""
    states = [model.readiness.state for model in models.models]
    for state in _ON_THE_WAY:
        if state in states:
            return _with_reason(models, state)
    if all(state == "ready" for state in states):
        return Readiness("ready")
    state = "failed" if all(state == "failed" for state in states) else "degraded"
    return _with_reason(models, state)


def health(models: ServedModels, is_closing: bool) -> tuple[int, dict[str, Any]]:
    """Status and body. 200 only when every model is ready."""
    overall = Readiness("degraded", "shutting down") if is_closing else process_readiness(models)
    single = models.models[0] if len(models.models) == 1 else None
    body: dict[str, Any] = {
        "api_version": API_VERSION,
        "status": overall.state,
        "reason": overall.reason,
        "model": single.name if single else None,
        "models": {m.name: _model(m) for m in models.models},
    }
    return (200 if overall.state == "ready" else 503), body


def _model(model: ServedModel) -> dict[str, Any]:
    quantization = None if model.running is None else model.running.quantization
    return {"status": model.readiness.state, "reason": model.readiness.reason, "quantization": quantization}


def live() -> dict[str, Any]:
    return {"api_version": API_VERSION, "status": "alive"}


def _with_reason(models: ServedModels, state: State) -> Readiness:
    """The reason of the first model in that state, else of the first that is not ready."""
    unready = [model.readiness for model in models.models if model.readiness.state != "ready"]
    alike = [readiness for readiness in unready if readiness.state == state]
    return Readiness(state, (alike or unready)[0].reason)
