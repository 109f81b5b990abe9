"""The models of this server as clients of TypeSafe list them."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import Response

from headway.server.respond import json_response
from headway.server.state import ServerState, state_of
from headway.wire.models import DecisionModel, DecisionModelList, decision_model

_DESCRIPTION = "a language model that answers questions by the logits of their labels"


def decision_models(state: ServerState) -> list[DecisionModel]:
    """All names that requests may ask for."""
    return [decision_model(name, _DESCRIPTION, state.created) for name in state.model_names]


async def systemone_models(request: Request) -> Response:
    """`GET /v1/systemone/models`."""
    state = state_of(request)
    state.require_ready()
    answer: DecisionModelList = {"models": decision_models(state)}
    return json_response(answer)
