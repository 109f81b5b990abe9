"""Which model answers a call."""

from __future__ import annotations

from collections.abc import Collection

from headway.errors import HeadwayError, LoadingError, NotFoundError, RequestError
from headway.runtime.http.call import Call, Endpoint
from headway.runtime.loaded_model import Surface
from headway.runtime.served_model import Running, ServedModel, ServedModels

_LONGEST_NAME = 200


def choose(
    models: ServedModels, call: Call, endpoint: Endpoint | None = None, aliases: Collection[str] = ()
) -> tuple[ServedModel, Running]:
    """Raises NotFoundError (`model_not_found`), RequestError for a name that is missing, LoadingError while the model is
    not ready, HeadwayError (`unsupported_surface`) for a model that does not serve the surface."""
    model = _named(models, call, endpoint, aliases)
    running = model.running
    if running is None or not model.is_ready:
        why = f": {model.readiness.reason}" if model.readiness.reason else ""
        raise LoadingError(f"The model {model.name!r} is not ready, it is {model.readiness.state}{why}")
    if call.surface not in running.model.planners:
        raise HeadwayError(
            f"The model {model.name!r} does not serve {call.surface}", reason="unsupported_surface", param="model",
            fix=f"It serves: {', '.join(running.surfaces) or 'nothing'}.",
        )  # fmt: skip
    return model, running


def _named(models: ServedModels, call: Call, endpoint: Endpoint | None, aliases: Collection[str]) -> ServedModel:
    name = call.model
    if name is None:
        if len(models.models) == 1:
            return models.models[0]
        if endpoint is not None and endpoint.is_model_optional:
            return _first(models, call.surface)
        raise RequestError(
            "model is required, since several models are served here", param="model", fix=f"Served are: {_names(models)}."
        )
    found = models.named(name)
    if found is not None:
        return found
    if endpoint is not None and ((endpoint.has_aliases and name in aliases) or endpoint.names_anything):
        return _first(models, call.surface)
    shown = name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 3] + "..."
    raise NotFoundError(
        f"The model {shown!r} does not exist here", reason="model_not_found", param="model", fix=f"Served are: {_names(models)}."
    )


def _first(models: ServedModels, surface: Surface) -> ServedModel:
    """The first model that serves the surface; while none is known to, the first that may turn out to."""
    serving = [model for model in models.models if model.running is not None and surface in model.running.model.planners]
    coming = [model for model in models.models if model.running is None and model.readiness.state != "failed"]
    if serving or coming:
        return (serving or coming)[0]
    raise HeadwayError(f"No model here serves {surface}", reason="unsupported_surface", param="model")


def _names(models: ServedModels) -> str:
    return ", ".join(model.name for model in models.models)
