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
from headway.server.insight import server_info, tokenizer_info
from headway.server.invocations import invocations
from headway.server.operations import load, metrics, models, reset_prefix_cache, version
from headway.server.settings import ServerSettings
from headway.server.tokenize import detokenize, tokenize
from headway.wire.chat import ChatAnswer, ChatBody
from headway.wire.completions import CompletionAnswer, CompletionBody
from headway.wire.invocation import InvocationBody
from headway.wire.models import ModelList
from headway.wire.operations import HealthAnswer, LoadAnswer, ResetAnswer, VersionAnswer
from headway.wire.tokenize import DetokenizeAnswer, DetokenizeBody, TokenizeAnswer, TokenizeBody

Handler = Callable[[Request], Awaitable[Response]]


def _always(settings: ServerSettings) -> bool:
    return True


class Route(NamedTuple):
    """`counted`: a request that the engine works for, part of the server's load. `streams`: events, when asked for.

    `exists` tells whether the operator wants it.
    """

    path: str
    methods: tuple[str, ...]
    handler: Handler
    body: type[BaseModel] | None = None
    answer: Any = None
    counted: bool = False
    streams: bool = False
    needs_engine: bool = True
    media: str = "application/json"
    query: tuple[str, ...] = ()
    exists: Callable[[ServerSettings], bool] = _always


ROUTES = (
    Route("/health", ("GET",), health, answer=HealthAnswer, query=("verbose",)),
    Route("/ping", ("GET", "POST"), health, answer=HealthAnswer, query=("verbose",)),
    Route("/version", ("GET",), version, answer=VersionAnswer, needs_engine=False),
    Route("/metrics", ("GET",), metrics, media="text/plain", needs_engine=False),
    Route("/load", ("GET",), load, answer=LoadAnswer, needs_engine=False),
    Route("/v1/models", ("GET",), models, answer=ModelList),
    Route("/v1/completions", ("POST",), create_completion, CompletionBody, CompletionAnswer, counted=True, streams=True),
    Route("/v1/chat/completions", ("POST",), create_chat_completion, ChatBody, ChatAnswer, counted=True, streams=True),
    Route("/tokenize", ("POST",), tokenize, TokenizeBody, TokenizeAnswer),
    Route("/detokenize", ("POST",), detokenize, DetokenizeBody, DetokenizeAnswer),
    Route("/invocations", ("POST",), invocations, InvocationBody, dict[str, Any], counted=True, streams=True),
    Route("/tokenizer_info", ("GET",), tokenizer_info, answer=dict[str, Any], exists=lambda s: s.enable_tokenizer_info_endpoint),
    Route("/reset_prefix_cache", ("POST",), reset_prefix_cache, answer=ResetAnswer, exists=lambda s: s.server_dev_mode),
    Route("/server_info", ("GET",), server_info, answer=dict[str, Any], needs_engine=False, exists=lambda s: s.server_dev_mode),
)
OPEN_PATHS = frozenset({"/health", "/ping", "/version", "/metrics"})  # need no key

# Routes of the contract whose feature does not exist yet: they answer 501 and say so.
NOT_BUILT_ROUTES = {
    "/start_profile": "profiler routes; VLLM_TRACE_FUNCTION=1 profiles functions",
    "/stop_profile": "profiler routes; VLLM_TRACE_FUNCTION=1 profiles functions",
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
}
