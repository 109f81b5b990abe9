"""GET and DELETE /v1/responses/{id}, GET /v1/responses/{id}/input_items."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from headway.errors import NotBuiltError, NotFoundError, RequestError
from headway.router.listener.errors import MethodNotAllowedError
from headway.router.listener.request import PublicRequest
from headway.router.listener.respond import send_object
from headway.router.protocols.responses.endpoint import store_of
from headway.router.protocols.responses.history import owned

PREFIX = "/v1/responses/"
_MOST_LISTED = 100


async def handle_stored(request: PublicRequest) -> None:
    """Raises NotFoundError, RequestError."""
    name, _, rest = request.path.removeprefix(PREFIX).partition("/")
    store = store_of(request.generation)
    query = dict(parse_qsl(request.scope.get("query_string", b"").decode("latin-1")))
    if rest == "input_items" and request.method == "GET":
        record = await owned(store, name, request.caller.identity)
        await send_object(request.send, _page(record["input"], query))
    elif rest == "" and request.method == "GET":
        if query.get("stream", "").lower() == "true":
            raise NotBuiltError("a stored response cannot be streamed", param="stream", fix="Leave stream out.")
        record = await owned(store, name, request.caller.identity)
        await send_object(request.send, record["response"])
    elif rest == "" and request.method == "DELETE":
        await owned(store, name, request.caller.identity)
        await store.delete(name)
        await send_object(request.send, {"id": name, "object": "response", "deleted": True})
    elif rest in ("", "input_items"):
        raise MethodNotAllowedError(request.path, request.method, "GET" if rest else "GET, DELETE")
    else:
        raise NotFoundError(f"There is no route {request.method[:20]} {request.path[:200]}", reason="route_not_found")


def _page(items: list[dict[str, Any]], query: Mapping[str, str]) -> dict[str, Any]:
    limit, order, after = query.get("limit", "20"), query.get("order", "desc"), query.get("after")
    if not limit.isdecimal() or not 1 <= int(limit[:4]) <= _MOST_LISTED:
        raise RequestError(f"limit must be between 1 and {_MOST_LISTED}", param="limit")
    if order not in ("asc", "desc"):
        raise RequestError("order must be asc or desc", param="order")
    sorted_items = items if order == "asc" else items[::-1]
    if after is not None:
        at = next((number for number, item in enumerate(sorted_items) if item["id"] == after), None)
        if at is None:
            raise RequestError("after names no item of this response", param="after")
        sorted_items = sorted_items[at + 1 :]
    page = sorted_items[: int(limit)]
    ends = (page[0]["id"], page[-1]["id"]) if page else (None, None)
    return {"object": "list", "data": page, "first_id": ends[0], "last_id": ends[1], "has_more": len(sorted_items) > len(page)}
