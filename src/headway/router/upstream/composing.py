"""What is sent to a provider model for one request: body, headers, route."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from headway.errors import RequestError
from headway.router.protocols.translation import Losses
from headway.router.request.context import RequestContext
from headway.router.selection.result import Selection
from headway.router.upstream.asking import Question
from headway.router.upstream.backend import Backend
from headway.router.upstream.formats.table import FORMATS
from headway.router.upstream.reasoning import parameters_of, reasoning_fields, with_reasoning
from headway.router.upstream.targets import Target

_FORWARDED = ("traceparent", "tracestate", "x-request-id")
_NEVER_SENT = ("model", "metadata")
_OTHER_ROUTES: Mapping[str, str] = {"embeddings": "/embeddings", "completions": "/completions"}
"""Routes that pass a client's body on as it is, by the protocol of the request."""


def question_for(
    context: RequestContext,
    target: Target,
    selection: Selection,
    default_effort: str | None,
    changes: Mapping[str, Any],
) -> Question:
    """`changes` are fields that the caller needs in the body, such as `logprobs`; None takes one away. Raises RequestError for a route that the model's API does not have."""
    body = {key: value for key, value in context.body.items() if key not in _NEVER_SENT}
    body = {key: value for key, value in {**body, **changes}.items() if key not in changes or value is not None}
    family = target.reasoning if context.decision_name is not None else None
    if family is not None:
        _count_reasoning(context, target, selection)
    losses = Losses()
    path = other_route(context)
    formats = {backend.format for backend in target.backends}
    if path is not None and formats - {"openai"}:
        raise RequestError(
            f'model "{target.name}" speaks an API without {path}',
            reason="not_built",
            fix="Use a model with api_format openai.",
        )

    def payload(backend: Backend) -> bytes:
        sent = {"model": selection.lora or backend.model_id, **body}
        if path is not None:
            return orjson.dumps(sent)
        if family is not None:
            on, mode, effort = bool(selection.use_reasoning), selection.reasoning_mode, selection.reasoning_effort
            fields = reasoning_fields(family, backend.reasoning, on, mode, effort, default_effort)
            for name in parameters_of(fields):
                context.generation.services.metrics.count("llm_reasoning_template_usage", family.id, name)
            sent = with_reasoning(sent, fields)
        if backend.format != "openai":
            sent = FORMATS[backend.format].request(sent, losses)
            context.response_headers["x-vsr-upstream-protocol"] = backend.format
            if losses.found:
                context.response_headers["x-vsr-protocol-warnings"] = ",".join(map(str, losses.found))
        return orjson.dumps(sent)

    return Question(
        payload,
        lambda backend: backend_headers(context, backend),
        lambda backend: backend.chat if path is None else backend.url(path),
        context.deadline if context.deadline.visible else None,
        context.attempts,
    )


def _count_reasoning(context: RequestContext, target: Target, selection: Selection) -> None:
    metrics = context.generation.services.metrics
    metrics.count("llm_reasoning_decisions", target.name, "on" if selection.use_reasoning else "off")
    if selection.reasoning_effort is not None:
        metrics.count("llm_reasoning_effort_usage", target.name, selection.reasoning_effort)


def other_route(context: RequestContext) -> str | None:
    """None for chat. A completions request that was translated to a chat (it has messages) is a chat."""
    return None if "messages" in context.body else _OTHER_ROUTES.get(context.protocol)


def backend_headers(context: RequestContext, backend: Backend) -> dict[str, str]:
    """Its credentials, what goes on of the client's headers, and what plugins changed."""
    headers = {**backend.headers, "accept-encoding": "identity"}
    headers.update((name, context.headers[name]) for name in _FORWARDED if name in context.headers)
    if backend.user_key is not None and (own := context.headers.get(backend.user_key.sent_in)):
        headers[backend.user_key.header] = f"{backend.user_key.prefix}{own}"
    for name, value in context.upstream_headers.items():
        if value is None:
            headers.pop(name, None)
        else:
            headers[name] = value
    return headers
