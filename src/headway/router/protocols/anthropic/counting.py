"""`POST /v1/messages/count_tokens`: how many tokens a Messages request has, without asking a model to answer it."""

from __future__ import annotations

from typing import Any

from headway.router.listener.admission import require_model_allowed
from headway.router.listener.answer_headers import joined, routing_headers, safe_headers
from headway.router.listener.head import deadline_of
from headway.router.listener.limiting import let_in
from headway.router.listener.request import PublicRequest
from headway.router.listener.request_body import parsed, read_body
from headway.router.listener.respond import send_object
from headway.router.listener.trace import debug_headers
from headway.router.protocols.anthropic.request import chat_body
from headway.router.protocols.translation import Losses
from headway.router.request.context import RequestContext
from headway.router.routing import route
from headway.router.selection.requirements import estimated_tokens

PATH = "/v1/messages/count_tokens"
_SECONDS = 45.0
_NOT_ASKED_FOR = ("max_tokens", "stream")


async def handle_counting(request: PublicRequest) -> None:
    """Counted by a backend of the model that would answer, before plugins change the request; estimated where none can count.

    Raises HeadwayError.
    """
    context = await _routed(request)
    found = await context.generation.upstreams.count_tokens(context)
    source = "estimate" if found is None else "backend"
    request.generation.services.metrics.count("headway_token_counts", source)
    headers = [*routing_headers(context, "upstream"), (b"x-headway-token-count", source.encode())]
    answer = {"input_tokens": estimated_tokens(context.body) if found is None else found}
    await send_object(request.send, answer, joined(headers, debug_headers(context)) if context.debug else headers)


async def _routed(request: PublicRequest) -> RequestContext:
    """The request with the model that it would get. It counts under rate limits, and costs nothing."""
    caller = request.caller
    body = parsed(await read_body(request), request.front.limits)
    losses = Losses()
    chat: dict[str, Any] = chat_body({**body, "max_tokens": 1}, losses)
    model = str(chat["model"])
    require_model_allowed(model, request.rules, caller.key)
    admitted = await let_in(request, model)
    context = RequestContext(
        generation=request.generation,
        body={key: value for key, value in chat.items() if key not in _NOT_ASKED_FOR},
        headers=caller.headers,
        identity=caller.identity,
        deadline=deadline_of(caller, _SECONDS),
        request_id=caller.request_id,
        protocol="anthropic",
        listener=request.rules.name,
        debug=caller.debug,
        dry_run=True,
    )
    await route(context)
    context.response_headers.update({name.decode(): value.decode("latin-1") for name, value in safe_headers(admitted.headers)})
    return context
