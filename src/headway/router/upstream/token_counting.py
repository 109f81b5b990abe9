"""The prompt tokens of a chat, counted by a backend that can: vLLM's `/tokenize`, Anthropic's `/v1/messages/count_tokens`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import orjson
from yarl import URL

from headway.errors import RequestError
from headway.router.protocols.translation import Losses
from headway.router.request.context import RequestContext
from headway.router.upstream.asking import Asking, Question
from headway.router.upstream.backend import Backend
from headway.router.upstream.composing import backend_headers
from headway.router.upstream.errors import UpstreamError
from headway.router.upstream.exchange import TryError
from headway.router.upstream.formats.table import FORMATS

MOST_SECONDS: Final = 20.0
_TOKENIZED = ("messages", "tools", "chat_template_kwargs", "reasoning_effort")
_COUNTED = ("model", "messages", "system", "tools", "tool_choice", "thinking")
_MEMBERS: Mapping[str, str] = {"openai": "count", "anthropic": "input_tokens"}


async def counted_tokens(asking: Asking, context: RequestContext) -> int | None:
    """None when the model's backends cannot count, do not answer, or answer something else."""
    backends = asking.target.backends
    if not backends or any(backend.counting is None for backend in backends):
        return None
    deadline = context.deadline if context.deadline.visible else None
    question = Question(
        lambda backend: _payload(context, backend), lambda backend: backend_headers(context, backend), _url, deadline=deadline, attempts=context.attempts
    )
    limits = asking.target.reliability
    try:
        exchange = await asking.ask(question, replace(limits, total=min(MOST_SECONDS, limits.total or MOST_SECONDS)))
        raw = await exchange.read()
    except (UpstreamError, TryError, RequestError):
        return None
    return _number(raw, exchange.backend) if exchange.status == 200 else None


def _url(backend: Backend) -> URL:
    assert backend.counting is not None
    return backend.counting


def _payload(context: RequestContext, backend: Backend) -> bytes:
    selection = context.selection
    sent = {"model": (selection and selection.lora) or backend.model_id, **{key: value for key, value in context.body.items() if key != "model"}}
    if backend.format == "anthropic":
        sent = FORMATS["anthropic"].request(sent, Losses())
    kept = _COUNTED if backend.format == "anthropic" else ("model", *_TOKENIZED)
    return orjson.dumps({name: sent[name] for name in kept if sent.get(name) is not None})


def _number(raw: bytes, backend: Backend) -> int | None:
    try:
        found: Any = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    number = found.get(_MEMBERS[backend.format]) if isinstance(found, Mapping) else None
    return number if isinstance(number, int) and not isinstance(number, bool) and number >= 0 else None
