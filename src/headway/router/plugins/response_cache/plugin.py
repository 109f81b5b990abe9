"""The plugin response_cache."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import orjson

from headway.router.config.document.cache_plugin import ResponseCachePlugin
from headway.router.config.document.decisions import Decision
from headway.router.config.document.stores import ResponseCacheStore
from headway.router.deployments.calls import Unanswered
from headway.router.generation.services import Services
from headway.router.plugins.completion import Collected, replayed
from headway.router.plugins.models import asking, embedded
from headway.router.plugins.plugin import Plugin
from headway.router.plugins.response_cache.controls import Controls, controls_of
from headway.router.plugins.response_cache.fingerprint import Fingerprint, fingerprint
from headway.router.plugins.response_cache.guard.guard import difference
from headway.router.plugins.response_cache.operations import step
from headway.router.plugins.response_cache.policy_identity import policy_identity
from headway.router.plugins.response_cache.scope import scope_of
from headway.router.plugins.response_cache.storable import Storable, judged
from headway.router.plugins.store_embedding import store_embedding
from headway.router.request.context import RequestContext
from headway.router.request.decoding import body_of, chunks_of
from headway.router.request.reply import Reply
from headway.router.signals.kind import Recipe
from headway.router.stores.nearest import Vector
from headway.router.stores.response_cache.entry import Entry
from headway.router.stores.response_cache.store import CacheStore

_LARGEST_BODY = 1 << 20  # bytes of an answer that is kept
_PERSONALIZING = ("rag", "masking")


@dataclass(frozen=True, slots=True)
class Policy:
    """A decision's settings, with what they take from the store's."""

    settings: ResponseCachePlugin
    identity: str
    threshold: float
    ttl: int
    candidates: int
    deployment: str | None  # that makes vectors; None for exact

    @property
    def exact_first(self) -> bool:
        return self.settings.mode != "semantic"


@dataclass(slots=True)
class _Asked:
    """What `before` found out, for `after`."""

    fingerprint: Fingerprint
    scope: str
    controls: Controls
    vector: Vector | None = None
    representation: str = ""


class ResponseCache(Plugin):
    """Before: the same request, then (unless the mode is exact) the most similar one of its partition that the guard lets pass. After: complete
    answers of backends are kept; streams pass through as they come."""

    type = "response_cache"

    def __init__(self, policy: Policy, store: CacheStore) -> None:
        self._policy = policy
        self._store = store
        self._counted: str | None = None  # the representation for which entries were counted last

    def deployments(self) -> frozenset[str]:
        return frozenset({self._policy.deployment} - {None})  # type: ignore[arg-type]

    async def before(self, context: RequestContext) -> Reply | None:
        policy = self._policy
        scope = scope_of(context.identity, policy.settings.scope)
        controls = controls_of(context, policy.settings.controls)
        if scope is None or not (controls.reads or controls.writes):
            context.cache_status = "bypass"
            return None
        asked = _Asked(fingerprint(context, scope, policy.identity, policy.settings.revision), scope, controls)
        context.notes[self] = asked
        entry, similarity = await self._found(context, asked)
        if entry is not None:
            await self._store.used(entry)
            return self._hit(context, entry, similarity)
        context.cache_status = "miss" if controls.reads else "bypass"
        context.response_headers["x-vsr-cache-hit"] = "false"
        context.generation.services.metrics.count("llm_cache_plugin_misses", context.decision_name or "")
        return None

    async def after(self, context: RequestContext, reply: Reply) -> Reply:
        asked = context.notes.get(self)
        if not isinstance(asked, _Asked) or not asked.controls.writes or reply.path != "upstream" or reply.status != 200:
            return reply
        if reply.streams:
            reply.chunks, reply.raw_chunks = self._watched(context, asked, chunks_of(reply)), None
        else:
            await self._keep(context, asked, body_of(reply))
        return reply

    async def _found(self, context: RequestContext, asked: _Asked) -> tuple[Entry | None, float]:
        reads = asked.controls.reads
        if self._policy.exact_first and reads:
            entry = await self._same(context, asked, None)
            if entry is not None:
                return entry, 1.0
        if self._policy.deployment is None:
            return None, 0.0
        await self._embed(context, asked)
        if not reads:
            return None, 0.0
        if not self._policy.exact_first:
            entry = await self._same(context, asked, asked.representation)
            if entry is not None:
                return entry, 1.0
        with step(context.generation.services.metrics, self._store.backend, "lookup_semantic") as looking:
            entry, similarity = await self._similar(context, asked)
            looking.found(entry)
        return entry, similarity

    async def _same(self, context: RequestContext, asked: _Asked, representation: str | None) -> Entry | None:
        print_ = asked.fingerprint
        with step(context.generation.services.metrics, self._store.backend, "lookup_exact") as looking:
            entry = self._young(asked, await self._store.same(print_.partition, print_.exact, representation))
            looking.found(entry)
        return entry

    async def _similar(self, context: RequestContext, asked: _Asked) -> tuple[Entry | None, float]:
        if asked.vector is None:
            return None, 0.0
        found = await self._store.nearest(asked.fingerprint.partition, asked.representation, asked.vector, self._policy.candidates)
        if found:
            context.response_headers["x-vsr-cache-similarity"] = f"{min(1.0, found[0][1]):.4f}"
        for entry, similarity in found:
            if similarity < self._policy.threshold:
                break
            reason = difference(asked.fingerprint.query, entry.query)
            if reason is not None:
                context.generation.services.metrics.count("headway_cache_guard_rejections", reason)
            elif self._young(asked, entry) is not None:
                return entry, similarity
        return None, 0.0

    async def _embed(self, context: RequestContext, asked: _Asked) -> None:
        """A text without words, one that the model cannot read in full, and a model that does not answer leave only the same request."""
        assert self._policy.deployment is not None
        if not asked.fingerprint.query.strip():
            return
        with asking(context) as calls:
            answer = await embedded(calls, self._policy.deployment, [asked.fingerprint.query])
        if not isinstance(answer, Unanswered) and answer.read_all:
            asked.vector, asked.representation = answer.vectors[0], answer.representation
            if self._counted != answer.representation:
                await self._count(context, answer.representation)

    @staticmethod
    def _young(asked: _Asked, entry: Entry | None) -> Entry | None:
        limit = asked.controls.max_age
        return None if entry is None or (limit is not None and entry.age > limit) else entry

    def _hit(self, context: RequestContext, entry: Entry, similarity: float) -> Reply:
        context.cache_status = "hit"
        context.warnings.extend(entry.warnings)
        context.response_headers.update(
            {
                "x-vsr-cache-hit": "true",
                "x-vsr-cache-similarity": f"{min(1.0, similarity):.4f}",
                "x-vsr-cache-entry": entry.id,
                "age": str(int(entry.age)),
            }
        )
        context.generation.services.metrics.count("llm_cache_plugin_hits", context.decision_name or "")
        return replayed(orjson.loads(entry.body), context, "cache")

    async def _watched(self, context: RequestContext, asked: _Asked, chunks: AsyncIterator[dict[str, Any]]) -> AsyncIterator[dict[str, Any]]:
        collected = Collected()
        async for chunk in chunks:
            collected.add(chunk)
            yield chunk
        if collected.complete:
            await self._keep(context, asked, collected.body())

    async def _keep(self, context: RequestContext, asked: _Asked, body: dict[str, Any]) -> None:
        storable = judged(body)
        vector = asked.vector if storable is Storable.BY_SIMILARITY else None
        ttl = self._policy.ttl if asked.controls.ttl is None else asked.controls.ttl
        packed = orjson.dumps(body)
        if storable is Storable.NEVER or len(packed) > _LARGEST_BODY or (asked.controls.ttl == 0):
            return
        now = time.time()
        entry = Entry(
            id=uuid.uuid4().hex,
            partition=asked.fingerprint.partition,
            exact=asked.fingerprint.exact,
            query=asked.fingerprint.query,
            body=packed,
            created=now,
            expires=now + ttl if ttl else None,
            representation=asked.representation if vector is not None else "",
            vector=None if vector is None else np.ascontiguousarray(vector),
            recipe=context.recipe.name if context.recipe else "",
            decision=context.decision_name or "",
            model=(context.selection.model if context.selection else None) or "",
            scope=self._policy.settings.scope,
            warnings=tuple(context.warnings),
        )
        with step(context.generation.services.metrics, self._store.backend, "store"):
            await self._store.keep(entry)
        context.generation.services.metrics.count("llm_cache_entries", self._store.backend)
        await self._count(context, asked.representation)

    async def _count(self, context: RequestContext, representation: str) -> None:
        """Entries of another model's vectors are never found by similarity; this is how they are seen."""
        self._counted = representation
        counts = dict(await self._store.counts())
        metrics = context.generation.services.metrics
        metrics.set("headway_cache_held_entries", counts.pop("", 0), "none")
        if representation:
            metrics.set("headway_cache_held_entries", counts.pop(representation, 0), "current")
            metrics.set("headway_cache_held_entries", sum(counts.values()), "foreign")


def personalizing(decision: Decision) -> list[str]:
    """The plugins of a decision that put something of the user, or of documents, into its requests."""
    return [plugin.type for plugin in decision.plugins or () if plugin.type in _PERSONALIZING and plugin.configuration.get("enabled", True)]


def compile_response_cache(configuration: ResponseCachePlugin, decision: Decision, recipe: Recipe, services: Services) -> ResponseCache | None:
    """None when the decision, or the store for all, is switched off, and for a decision whose answers depend on what rag or masking put into the
    request unless `personalized` allows exact copies."""
    stores = recipe.document.global_.stores if recipe.document.global_ else None
    settings = (stores.response_cache if stores else None) or ResponseCacheStore()
    if not configuration.enabled or not settings.enabled:
        return None
    personal = personalizing(decision)
    if personal and configuration.personalized.mode == "disabled":
        return None
    semantic = configuration.mode != "exact" and not personal
    if personal:
        configuration = configuration.model_copy(update={"mode": "exact"})
    policy = Policy(
        settings=configuration,
        identity=policy_identity(decision, recipe),
        threshold=settings.similarity_threshold if configuration.threshold is None else configuration.threshold,
        ttl=settings.ttl_seconds if configuration.ttl_seconds is None else configuration.ttl_seconds,
        candidates=settings.redis.search.topk,
        deployment=store_embedding(settings.embedding_model, recipe, "response_cache") if semantic else None,
    )
    return ResponseCache(policy, services.response_caches.open(settings, services.state))
