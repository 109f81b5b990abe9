"""All routes as one table: path, methods, handler, body and answer for the API description, and who needs a key."""

from __future__ import annotations

from typing import Any

from headway.server.chat import create_chat_completion
from headway.server.chat_batch import create_chat_batch
from headway.server.completions import create_completion
from headway.server.control.routes import CONTROL_ROUTES
from headway.server.decisions.routes import DECISION_ROUTES
from headway.server.health import health
from headway.server.insight import server_info, tokenizer_info
from headway.server.invocations import invocations
from headway.server.kv_event_sources import kv_event_sources
from headway.server.lora.routes import LORA_ROUTES
from headway.server.messages.routes import MESSAGES_ROUTES
from headway.server.operations import load, metrics, models, version
from headway.server.pooling.routes import POOLING_ROUTES
from headway.server.responses.routes import RESPONSES_ROUTES
from headway.server.route import Route
from headway.server.tokenize import detokenize, tokenize
from headway.wire.chat import ChatAnswer, ChatBody
from headway.wire.chat_batch import ChatBatchBody
from headway.wire.completions import CompletionAnswer, CompletionBody
from headway.wire.invocation import InvocationBody
from headway.wire.models import ModelList
from headway.wire.operations import HealthAnswer, KVEventSource, LoadAnswer, VersionAnswer
from headway.wire.tokenize import DetokenizeAnswer, DetokenizeBody, TokenizeAnswer, TokenizeBody

ROUTES = (
    Route("/health", ("GET",), health, answer=HealthAnswer, query=("verbose",)),
    Route("/ping", ("GET", "POST"), health, answer=HealthAnswer, query=("verbose",)),
    Route("/version", ("GET",), version, answer=VersionAnswer, needs_engine=False),
    Route("/metrics", ("GET",), metrics, media="text/plain", needs_engine=False),
    Route("/load", ("GET",), load, answer=LoadAnswer, needs_engine=False),
    Route("/kv_event_sources", ("GET",), kv_event_sources, answer=list[KVEventSource], needs_engine=False),
    Route("/v1/models", ("GET",), models, answer=ModelList),
    Route("/v1/completions", ("POST",), create_completion, CompletionBody, CompletionAnswer, counted=True, streams=True),
    Route("/v1/chat/completions", ("POST",), create_chat_completion, ChatBody, ChatAnswer, counted=True, streams=True),
    Route("/v1/chat/completions/batch", ("POST",), create_chat_batch, ChatBatchBody, ChatAnswer, counted=True),
    *RESPONSES_ROUTES,
    *MESSAGES_ROUTES,
    *POOLING_ROUTES,
    *DECISION_ROUTES,
    *LORA_ROUTES,
    Route("/tokenize", ("POST",), tokenize, TokenizeBody, TokenizeAnswer),
    Route("/detokenize", ("POST",), detokenize, DetokenizeBody, DetokenizeAnswer),
    Route("/invocations", ("POST",), invocations, InvocationBody, dict[str, Any], counted=True, streams=True),
    Route("/tokenizer_info", ("GET",), tokenizer_info, answer=dict[str, Any], exists=lambda s: s.enable_tokenizer_info_endpoint),
    *CONTROL_ROUTES,
    Route("/server_info", ("GET",), server_info, answer=dict[str, Any], needs_engine=False, exists=lambda s: s.server_dev_mode),
)
OPEN_PATHS = frozenset({"/health", "/ping", "/version", "/metrics"})  # need no key

# Routes of the contract whose feature does not exist yet: they answer 501 and say so.
NOT_BUILT_ROUTES = {
    "/collective_rpc": "calls into workers",
    "/update_weights": "replacing weights in place; /swap_model loads another model",
    "/init_weight_transfer_engine": "replacing weights in place; /swap_model loads another model",
    "/start_weight_update": "replacing weights in place; /swap_model loads another model",
    "/finish_weight_update": "replacing weights in place; /swap_model loads another model",
    "/weight_info": "replacing weights in place; /swap_model loads another model",
    "/scale_elastic_ep": "expert parallelism",
    "/v1/audio/transcriptions": "audio",
    "/v1/audio/translations": "audio",
}
