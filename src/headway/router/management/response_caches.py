"""The response cache: what it holds, and taking entries out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from pydantic import ValidationError

from headway.router.config.document.cache_plugin import ResponseCachePlugin
from headway.router.config.document.stores import ResponseCacheStore
from headway.router.management.answer import Answer, ManagementError
from headway.router.management.call import Call
from headway.router.management.models import switched_off
from headway.router.management.route import Route
from headway.router.plugins.response_cache.guard.guard import difference
from headway.router.stores.response_cache.entry import Entry
from headway.router.stores.response_cache.store import CacheStore

CONFIRMATION = "flush response cache"
_SELECTORS = ("recipe", "decision", "model", "scope", "id")
_LONGEST_QUERY = 64 << 10


async def capabilities(call: Call) -> Answer:
    store = _store(call)
    body = {
        "backend": store.backend,
        "modes": ["semantic", "exact", "exact_then_semantic"],
        "scopes": ["user", "team", "tenant", "global"],
        "eviction_policies": ["fifo", "lru", "lfu"],
        "outlives_the_process": store.backend != "memory",
        "shared_between_routers": store.backend == "redis",
        "guard": "always",
    }
    return Answer(body)


async def health(call: Call) -> Answer:
    store = _store(call)
    trouble = await store.trouble()
    return Answer({"backend": store.backend, "status": "degraded" if trouble else "healthy", "reason": trouble}, 503 if trouble else 200)


async def stats(call: Call) -> Answer:
    """Numbers only: nothing of requests and answers."""
    store = _store(call)
    counts = dict(await store.counts())
    metrics = call.state.services.metrics
    decisions = {entry.decision for entry in await store.entries()}
    body = {
        "backend": store.backend,
        "entries": sum(counts.values()),
        "without_vector": counts.pop("", 0),
        "by_representation": counts,
        "hits": sum(metrics.value("llm_cache_plugin_hits", name) for name in decisions),
        "misses": sum(metrics.value("llm_cache_plugin_misses", name) for name in decisions),
    }
    return Answer(body)


async def entries(call: Call) -> Answer:
    found = _selected(await _store(call).entries(), call.query)
    limit, offset = call.number("limit", 50, 100), call.number("offset", 0, 10**9)
    return Answer({"object": "list", "total": len(found), "data": [entry.described() for entry in found[offset : offset + limit]]})


async def entry(call: Call) -> Answer:
    """One entry; with `?content=true`, what was asked and answered (permission cache.manage)."""
    store = _store(call)
    found = await store.get(call.parameters["id"])
    if found is None:
        raise ManagementError("NOT_FOUND", "there is no such entry; it may have ended", 404)
    body = found.described()
    if call.flag("content"):
        if call.state.access.enabled and not call.may("cache.manage"):
            raise ManagementError("FORBIDDEN", "the content of entries needs the permission cache.manage", 403)
        body |= {"query": found.query, "response": orjson.loads(found.body)}
    return Answer(body)


async def delete_entry(call: Call) -> Answer:
    removed = await _store(call).remove([call.parameters["id"]])
    if not removed:
        raise ManagementError("NOT_FOUND", "there is no such entry; it may have ended", 404)
    call.state.services.response_caches.audit.note("delete", {"removed": removed}, call.role)
    return Answer({"id": call.parameters["id"], "deleted": True})


async def invalidate(call: Call) -> Answer:
    """Entries by recipe, decision, model, scope or id; a dry run unless `dry_run` is false."""
    body = call.json()
    selector = body.get("selector", {name: body[name] for name in _SELECTORS if name in body})
    if not isinstance(selector, Mapping) or not selector or any(name not in _SELECTORS for name in selector):
        raise ManagementError("INVALID_INPUT", f"selector must name at least one of {', '.join(_SELECTORS)}, and nothing else")
    dry_run = body.get("dry_run", True) is not False
    store = _store(call)
    found = _selected(await store.entries(), selector)
    removed = 0 if dry_run else await store.remove([each.id for each in found])
    if not dry_run:
        call.state.services.response_caches.audit.note("invalidate", {"selector": dict(selector), "removed": removed}, call.role)
    return Answer({"dry_run": dry_run, "matched": len(found), "removed": removed})


async def flush(call: Call) -> Answer:
    if call.json().get("confirm") != CONFIRMATION:
        raise ManagementError("INVALID_INPUT", f'flushing needs "confirm": "{CONFIRMATION}"')
    removed = await _store(call).clear()
    call.state.services.response_caches.audit.note("flush", {"removed": removed}, call.role)
    return Answer({"removed": removed})


async def audit(call: Call) -> Answer:
    return Answer({"object": "list", "data": call.state.services.response_caches.audit.lines})


async def test(call: Call) -> Answer:
    """Check a plugin's `configuration`, and what the guard says of two texts: nothing is looked up or kept."""
    body = call.json()
    result: dict[str, Any] = {"valid": True, "errors": []}
    if "configuration" in body:
        try:
            ResponseCachePlugin.model_validate(body["configuration"])
        except ValidationError as error:
            told = [{"field": ".".join(map(str, each["loc"])), "message": each["msg"]} for each in error.errors()]
            result = {"valid": False, "errors": told}
    if "queries" in body:
        pair = body["queries"]
        if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(text, str) and len(text) <= _LONGEST_QUERY for text in pair):
            raise ManagementError("INVALID_INPUT", "queries must be two strings")
        found = difference(pair[0], pair[1])
        result["guard"] = {"passes": found is None, "difference": found}
    return Answer(result)


def _store(call: Call) -> CacheStore:
    """That of the configuration that serves. Raises ManagementError where caching is switched off."""
    settings = cache_settings(call)
    if not settings.enabled:
        raise switched_off("the response cache", "Set global.stores.response_cache.enabled.")
    return call.state.services.response_caches.open(settings, call.state.services.state)


def cache_settings(call: Call) -> ResponseCacheStore:
    document = call.state.generations.current.document
    stores = document.global_.stores if document.global_ else None
    return (stores.response_cache if stores else None) or ResponseCacheStore()


def _selected(found: Sequence[Entry], selector: Mapping[str, Any]) -> list[Entry]:
    wanted = {name: selector[name] for name in _SELECTORS if name in selector}
    return [each for each in found if all(getattr(each, name) == value for name, value in wanted.items())]


_ROOT = "/api/v1/response-cache"
ROUTES = (
    Route("GET", f"{_ROOT}/capabilities", capabilities, "cache.read", "What the backend of the response cache can do."),
    Route("GET", f"{_ROOT}/health", health, "cache.read", "Whether the backend answers."),
    Route("GET", f"{_ROOT}/stats", stats, "cache.read", "Numbers of the response cache."),
    Route("GET", f"{_ROOT}/audit", audit, "cache.read", "Who took entries out."),
    Route("GET", f"{_ROOT}/entries", entries, "cache.read", "Entries, without their content."),
    Route("GET", f"{_ROOT}/entries/{{id}}", entry, "cache.read", "One entry."),
    Route("DELETE", f"{_ROOT}/entries/{{id}}", delete_entry, "cache.invalidate", "Take one entry out."),
    Route("POST", f"{_ROOT}/test", test, "cache.read", "Check a configuration, and what the guard says of two texts."),
    Route("POST", f"{_ROOT}/invalidate", invalidate, "cache.invalidate", "Take entries out by recipe, decision, model, scope or id."),
    Route("POST", f"{_ROOT}/flush", flush, "cache.manage", "Take all entries out."),
)
