"""PromptTokens: the tokens of a prompt, which only the model's tokenizer and template know; a backend's `/tokenize` is asked."""

from __future__ import annotations

import asyncio
import hashlib
import time
from array import array
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Final

import orjson

from headway.router.prefixes.token_chain import MOST_TOKENS, TokenChain
from headway.router.request.context import RequestContext
from headway.router.upstream.backend import Backend
from headway.router.upstream.composing import backend_headers
from headway.router.upstream.connections import Connections
from headway.router.upstream.exchange import Times, TryError, open_exchange

_CHAT: Final = ("messages", "tools", "chat_template_kwargs", "reasoning_effort")
_LARGEST_BODY: Final = 1 << 20  # bytes; longer prompts are placed without a look at prefixes
_LARGEST_ANSWER: Final = 32 << 20
_REST_SECONDS: Final = 5.0
_KEPT_TOKENS: Final = 2_000_000


class PromptTokens:
    """Of one model. An answer that takes longer than `seconds` is not waited for, and after a failure nobody asks for a while, so that a
    backend without the route costs one request a moment, once."""

    def __init__(self, connections: Connections, seconds: float):
        self._connections = connections
        self._seconds = seconds
        self._rests_until = 0.0
        self._kept: OrderedDict[bytes, TokenChain] = OrderedDict()
        self._kept_tokens = 0

    async def chain(self, context: RequestContext, backend: Backend) -> TokenChain | None:
        """None where the tokens are not known in time, or the prompt is none of text."""
        given = _given_tokens(context.body)
        if given is not None:
            return TokenChain(given)
        payload = _payload(context.body, backend)
        if payload is None or len(payload) > _LARGEST_BODY:
            return None
        name = hashlib.sha256(payload).digest()
        kept = self._kept.get(name)
        if kept is not None:
            self._kept.move_to_end(name)
            return kept
        if time.monotonic() < self._rests_until:
            return None
        tokens = await self._asked(context, backend, payload)
        if tokens is None:
            self._rests_until = time.monotonic() + _REST_SECONDS
            return None
        return self._keep(name, TokenChain(tokens))

    async def _asked(self, context: RequestContext, backend: Backend, payload: bytes) -> Sequence[int] | None:
        assert backend.counting is not None
        times = Times(self._seconds, self._seconds, self._seconds, asyncio.get_running_loop().time() + self._seconds)
        try:
            exchange = await open_exchange(self._connections, backend, backend.counting, payload, backend_headers(context, backend), times)
            raw = await exchange.read(_LARGEST_ANSWER)
        except TryError:
            return None
        return _tokens_of(raw) if exchange.status == 200 else None

    def _keep(self, name: bytes, chain: TokenChain) -> TokenChain:
        before = self._kept.pop(name, None)  # of a request that asked at the same time
        self._kept[name] = chain
        self._kept_tokens += _cost(chain) - (_cost(before) if before is not None else 0)
        while self._kept_tokens > _KEPT_TOKENS:
            self._kept_tokens -= _cost(self._kept.popitem(last=False)[1])
        return chain


def _cost(chain: TokenChain) -> int:
    return min(chain.length, MOST_TOKENS) + 1


def _given_tokens(body: Mapping[str, Any]) -> Sequence[int] | None:
    """Of a completion whose prompt is token ids."""
    prompt = body.get("prompt")
    if "messages" in body or not isinstance(prompt, list) or not prompt or not all(type(each) is int and 0 <= each < 1 << 32 for each in prompt):
        return None
    return prompt


def _payload(body: Mapping[str, Any], backend: Backend) -> bytes | None:
    if "messages" in body:
        return orjson.dumps({"model": backend.model_id, **{name: body[name] for name in _CHAT if body.get(name) is not None}})
    prompt = body.get("prompt")
    return orjson.dumps({"model": backend.model_id, "prompt": prompt}) if isinstance(prompt, str) and prompt else None


def _tokens_of(raw: bytes) -> Sequence[int] | None:
    try:
        found = orjson.loads(raw)
    except orjson.JSONDecodeError:
        return None
    tokens = found.get("tokens") if isinstance(found, Mapping) else None
    if not isinstance(tokens, list):
        return None
    try:
        return array("I", tokens)
    except (TypeError, OverflowError):
        return None
