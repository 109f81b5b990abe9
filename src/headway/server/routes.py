"""All routes as one table: path, methods, handler, body and answer for the API description, and who needs a key."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from fastapi import Request
from pydantic import BaseModel
from starlette.responses import Response

from headway.server.chat import create_chat_completion
from headway.server.completions import create_completion
from headway.server.health import health
from headway.server.operations import load, metrics, models, version
from headway.server.tokenize import detokenize, tokenize
from headway.wire.chat import ChatAnswer, ChatBody
from headway.wire.completions import CompletionAnswer, CompletionBody
from headway.wire.models import ModelList
from headway.wire.tokenize import DetokenizeAnswer, DetokenizeBody, TokenizeAnswer, TokenizeBody

Handler = Callable[[Request], Awaitable[Response]]


class Route(NamedTuple):
    """`counted`: a request that the engine works for, part of the server's load."""

    path: str
    methods: tuple[str, ...]
    handler: Handler
    body: type[BaseModel] | None = None
    answer: Any = None
    counted: bool = False


ROUTES = (
    Route("/health", ("GET",), health),
    Route("/ping", ("GET", "POST"), health),
    Route("/version", ("GET",), version),
    Route("/metrics", ("GET",), metrics),
    Route("/load", ("GET",), load),
    Route("/v1/models", ("GET",), models, answer=ModelList),
    Route("/v1/completions", ("POST",), create_completion, CompletionBody, CompletionAnswer, counted=True),
    Route("/v1/chat/completions", ("POST",), create_chat_completion, ChatBody, ChatAnswer, counted=True),
    Route("/tokenize", ("POST",), tokenize, TokenizeBody, TokenizeAnswer),
    Route("/detokenize", ("POST",), detokenize, DetokenizeBody, DetokenizeAnswer),
)
OPEN_PATHS = frozenset({"/health", "/ping", "/version", "/metrics"})  # need no key

# Routes of the contract whose feature does not exist yet: they answer 501 and say so.
NOT_BUILT_ROUTES = {
    "/v1/embeddings": "embeddings",
    "/v2/embed": "embeddings",
    "/pooling": "pooling models",
    "/classify": "classification",
    "/score": "scoring",
    "/v1/score": "scoring",
    "/rerank": "reranking",
    "/v1/rerank": "reranking",
    "/v2/rerank": "reranking",
    "/v1/responses": "the Responses API",
    "/v1/messages": "the Anthropic Messages API",
    "/v1/messages/count_tokens": "the Anthropic Messages API",
    "/v1/chat/completions/batch": "batches of chats",
    "/v1/systemone": "System One decisions",
    "/generative_scoring": "generative scoring",
    "/v1/audio/transcriptions": "audio",
    "/v1/audio/translations": "audio",
    "/v1/load_lora_adapter": "LoRA adapters",
    "/v1/unload_lora_adapter": "LoRA adapters",
    "/invocations": "the SageMaker route",
}
