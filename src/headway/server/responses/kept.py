"""`GET /v1/responses/{response_id}` and `POST /v1/responses/{response_id}/cancel`."""

from __future__ import annotations

from fastapi import Request
from starlette.responses import Response

from headway.errors import NotBuiltError, RequestError
from headway.server.respond import json_response
from headway.server.responses.endpoint import shelf_of
from headway.server.state import state_of


async def get_response(request: Request) -> Response:
    name = request.path_params["response_id"]
    record = shelf_of(state_of(request), name).get(name)
    if request.query_params.get("stream", "").lower() == "true":
        raise NotBuiltError("A response that is kept cannot be streamed", param="stream", fix="Leave stream out.")
    return json_response(record["response"])


async def cancel_response(request: Request) -> Response:
    """Raises RequestError for what does not run in the background; what has ended stays as it is."""
    name = request.path_params["response_id"]
    shelf = shelf_of(state_of(request), name)
    record = shelf.get(name)
    if not record["response"]["background"]:
        raise RequestError("Only responses in the background can be cancelled", param="response_id", fix="Close the connection of this one.")
    if await shelf.stop(name):
        shelf.put({**record["response"], "status": "cancelled"}, record["input"])
    return json_response(shelf.get(name)["response"])
