"""The routes of `/v1/responses`."""

from __future__ import annotations

from typing import Any, Final

from headway.server.responses.endpoint import create_response
from headway.server.responses.kept import cancel_response, get_response
from headway.server.route import Route
from headway.wire.responses.body import ResponsesBody

_ONE, _STATUSES = "/v1/responses/{response_id}", (400, 404)
RESPONSES_ROUTES: Final = (
    Route("/v1/responses", ("POST",), create_response, ResponsesBody, dict[str, Any], counted=True, streams=True),
    Route(_ONE, ("GET",), get_response, answer=dict[str, Any], needs_engine=False, query=("stream",), statuses=_STATUSES),
    Route(f"{_ONE}/cancel", ("POST",), cancel_response, answer=dict[str, Any], needs_engine=False, statuses=_STATUSES),
)
