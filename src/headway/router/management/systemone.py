"""Questions to a deployment, passed on as they came: for looking at a model apart from routing."""

from __future__ import annotations

from headway.router.deployments.pool import CallFailed
from headway.router.management.answer import Answer, ManagementError
from headway.router.management.call import Call
from headway.router.management.models import SECONDS, switched_off
from headway.router.management.route import Route
from headway.router.native.raw_model import with_model

_STATUS = {"rejected": 400, "timeout": 504}


async def ask(call: Call) -> Answer:
    """The body is that of /v1/systemone; `model` is the name of a deployment, and may be left out when there is only one that answers questions."""
    body = call.json()
    with call.state.generations.use() as generation:
        able = {pool.name: pool for pool in generation.deployments.pools if pool.card is not None and pool.card.question_types}
        if not able:
            raise switched_off("a deployment that answers questions", "Declare one, and use it in a signal.")
        name = body.get("model") or (next(iter(able)) if len(able) == 1 else None)
        if name not in able:
            raise ManagementError("INVALID_INPUT", f"model must be one of {', '.join(able)}, found {str(name)[:60]!r}")
        try:
            exchange = await able[name].call("/v1/systemone", lambda served: with_model(call.raw, served), SECONDS)
        except CallFailed as error:
            raise ManagementError("CLASSIFICATION_ERROR", f"the model did not answer: {error.outcome}", _STATUS.get(error.outcome, 503)) from error
    return Answer(exchange.body, exchange.status)


ROUTES = (Route("POST", "/api/v1/diagnostics/models/systemone", ask, "classify.invoke", "One question to a deployment."),)
