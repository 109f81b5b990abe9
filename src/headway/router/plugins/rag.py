"""rag: passages of the router's own documents that fit the request, put into it."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Sequence
from typing import Any

import orjson

from headway.errors import ConfigError, HeadwayError
from headway.router.config.document.decisions import Decision
from headway.router.config.document.plugins import RAGPlugin
from headway.router.deployments.calls import Answered, StageCalls, Unanswered
from headway.router.generation.services import Services
from headway.router.plugins import instructions
from headway.router.plugins.models import asking, embedded
from headway.router.plugins.plugin import Plugin
from headway.router.plugins.store_embedding import store_embedding
from headway.router.request.context import RequestContext
from headway.router.request.reply import Reply
from headway.router.signals.kind import Recipe
from headway.router.stores.vectors.opened import vector_settings
from headway.router.stores.vectors.records import Passage
from headway.router.stores.vectors.store import VectorStores

TOOL_NAME = "retrieve_documents"
WARNING = "retrieval_failed"
_THRESHOLD = 0.3
_CACHED_SECONDS = 300
_MOST_CACHED = 256


class RetrievalError(HeadwayError):
    """Documents could not be looked up, and the route does not answer without them."""

    reason = "retrieval_failed"


class Rag(Plugin):
    """`tool_role` adds a call of a tool `retrieve_documents` and its result, so that hallucination checks see where an answer comes from;
    `system_prompt` puts the passages before the instructions. Nothing is added when nothing fits."""

    type = "rag"

    def __init__(self, configuration: RAGPlugin, stores: VectorStores, embedding: str, reranker: str | None) -> None:
        self._configuration = configuration
        self._stores = stores
        self._embedding = embedding
        self._reranker = reranker
        self._found: dict[tuple[str, int], tuple[float, Sequence[Passage]]] = {}

    def deployments(self) -> frozenset[str]:
        return frozenset({self._embedding, self._reranker or self._embedding})

    async def before(self, context: RequestContext) -> Reply | None:
        """Raises RetrievalError with on_failure: block."""
        settings, query = self._configuration, context.view.user_text
        least = settings.min_confidence_threshold
        confidence = context.decision.confidence if context.decision else None
        if not query.strip() or (least is not None and (confidence is None or confidence < least)):
            return None
        began = time.perf_counter()
        passages = await self._passages(context, query)
        metrics = context.generation.services.metrics
        metrics.observe("rag_retrieval_latency_seconds", time.perf_counter() - began, context.decision_name or "")
        metrics.count("rag_retrieval_attempts", context.decision_name or "", "failed" if passages is None else "found" if passages else "empty")
        if passages is None:
            if settings.on_failure == "block":
                raise RetrievalError("documents that this route needs cannot be looked up now", fix="Try again, or see the vector store's state.")
            if settings.on_failure == "warn":
                context.warnings.append(WARNING)
        elif passages:
            context.body = self._enriched(context, query, passages)
        return None

    async def _passages(self, context: RequestContext, query: str) -> Sequence[Passage] | None:
        """None when looking up failed."""
        try:
            store = self._stores.find(str(self._configuration.backend_config["vector_store_id"]))
        except HeadwayError:
            return None
        key = f"{store.id}\0{query}", self._stores.version(store.id)
        kept = self._found.get(key)
        is_fresh = kept is not None and time.monotonic() < kept[0]
        if self._configuration.cache_results:
            metrics = context.generation.services.metrics
            metrics.count("rag_cache_hits" if is_fresh else "rag_cache_misses", context.decision_name or "")
        if kept is not None and is_fresh:
            return kept[1]
        with asking(context) as calls:
            found = await self._retrieved(calls, store.id, query)
        if found is not None and self._configuration.cache_results:
            while len(self._found) >= _MOST_CACHED:
                self._found.pop(next(iter(self._found)))
            self._found[key] = time.monotonic() + (self._configuration.cache_ttl_seconds or _CACHED_SECONDS), found
        return found

    async def _retrieved(self, calls: StageCalls, store: str, query: str) -> Sequence[Passage] | None:
        settings = self._configuration
        made = await embedded(calls, self._embedding, [query])
        if isinstance(made, Unanswered):
            return None
        least = _THRESHOLD if settings.similarity_threshold is None else settings.similarity_threshold
        found = await asyncio.to_thread(self._stores.search, store, made.representation, made.vectors[0], settings.top_k, least)
        if self._reranker is None or not found:
            return found
        answers = await calls.rerank(self._reranker, query, [passage.text for passage in found])
        if not all(isinstance(answer, Answered) for answer in answers):
            return None
        ranked = sorted(zip(answers, found, strict=True), key=lambda pair: -pair[0].value)  # type: ignore[union-attr]
        assert settings.rerank is not None
        return [passage for _, passage in ranked][: settings.rerank.top_k or settings.top_k]

    def _enriched(self, context: RequestContext, query: str, passages: Sequence[Passage]) -> dict[str, Any]:
        text = _joined(passages, self._configuration.max_context_length)
        messages = list(context.body.get("messages") or ())
        if self._configuration.injection_mode == "system_prompt":
            return {**context.body, "messages": instructions.put_first(messages, f"Use these documents where they help:\n\n{text}")}
        call = f"rag_{uuid.uuid4().hex[:16]}"
        arguments = orjson.dumps({"query": query}).decode()
        return {
            **context.body,
            "messages": [
                *messages,
                {"role": "assistant", "content": None, "tool_calls": [{"id": call, "type": "function", "function": {"name": TOOL_NAME, "arguments": arguments}}]},
                {"role": "tool", "tool_call_id": call, "content": text},
            ],
        }


def _joined(passages: Sequence[Passage], most: int | None) -> str:
    """Each with the name of its file; whole passages only, but at least the beginning of the first."""
    text = ""
    for passage in passages:
        more = f"[{passage.name}]\n{passage.text}"
        longer = f"{text}\n\n{more}" if text else more
        if most is not None and len(longer) > most:
            return text or longer[:most]
        text = longer
    return text


def compile_rag(configuration: RAGPlugin, decision: Decision, recipe: Recipe, services: Services) -> Rag | None:
    """Raises ConfigError when the store is switched off, nothing makes vectors, or no model is bound to rank again."""
    if not configuration.enabled:
        return None
    stores = services.vector_stores.open(recipe.document, services.state)
    if stores is None:
        raise ConfigError(
            f'decision "{decision.name}" looks documents up, and the vector store is switched off',
            param="global.stores.vector_store.enabled",
            fix="Set it to true.",
        )
    reranker = None
    if configuration.rerank is not None:
        binding = (recipe.routing.model_bindings or {}).get("rag.reranker")
        if binding is None:
            raise ConfigError("rerank needs a model", param="routing.model_bindings", fix="Bind `rag.reranker` in the recipe's model_bindings.")
        reranker = binding.deployment
    return Rag(configuration, stores, store_embedding(vector_settings(recipe.document).embedding_model, recipe, "vector_store"), reranker)
