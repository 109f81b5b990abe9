"""Configurations of plugins and stores: defaults, contradictions, and what vllm-sr has and this router has not."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from headway.router.config.document.cache_plugin import ResponseCachePlugin
from headway.router.config.document.compression_plugin import ContextCompressionPlugin, PromptCachePlugin
from headway.router.config.document.learning import Learning
from headway.router.config.document.plugins import DecisionPlugin, MaskingPlugin, RAGPlugin, ShadowDispatchPlugin
from headway.router.config.document.services import RateLimit, ReplayRedis, RouterReplay
from headway.router.config.document.stores import ResponseCacheStore, Stores, VectorStore
from headway.router.config.document.tool_plugins import ToolSelectionPlugin, ToolsPlugin

ON = {"enabled": True}
VECTORS = {"backend": "vectorstore", "backend_config": {"vector_store_id": "v"}}

NOT_SUPPORTED: list[tuple[type[Any], dict[str, Any]]] = [
    (DecisionPlugin, {"type": "memory", "configuration": {}}),
    (DecisionPlugin, {"type": "image_gen", "configuration": {}}),
    (RAGPlugin, {**ON, "backend": "milvus"}),
    (ShadowDispatchPlugin, {**ON, "model": "m", "tls_skip_verify": True}),
    (ContextCompressionPlugin, {**ON, "recovery": {"enabled": True, "store": "redis"}}),
    (ContextCompressionPlugin, {**ON, "targets": {"history": {"mode": "recoverable"}}}),
    (ContextCompressionPlugin, {**ON, "targets": {"memory": {"mode": "extractive"}}}),
    (ToolsPlugin, {**ON, "semantic_selection": True}),
    (ToolSelectionPlugin, {**ON, "advanced_filtering": {"retrieval_strategy": "hybrid_history"}}),
    (ResponseCacheStore, {"backend_type": "milvus"}),
    (VectorStore, {"backend_type": "qdrant"}),
    (VectorStore, {"metadata_store": "postgres"}),
]
WRONG: list[tuple[type[Any], dict[str, Any], str]] = [
    (ResponseCachePlugin, {}, "Field required"),
    (ResponseCachePlugin, {**ON, "semantic": {"similarity_threshold": 0.9}, "similarity_threshold": 0.8}, "keep one of them"),
    (ResponseCachePlugin, {**ON, "request_controls": {}, "control_header": "x"}, "keep one of them"),
    (ResponseCachePlugin, {**ON, "semantic": {"similarity_threshold": 1.5}}, "less than or equal to 1"),
    (ResponseCachePlugin, {**ON, "mode": "fuzzy"}, "semantic"),
    (ResponseCachePlugin, {**ON, "scope": "everyone"}, "global"),
    (MaskingPlugin, {**ON, "placeholders": {"A": "[A]"}}, "{index}"),
    (RAGPlugin, {**ON, "backend": "vectorstore"}, "vector_store_id"),
    (RAGPlugin, {**ON, **VECTORS, "top_k": 3, "rerank": {"top_k": 4}}, "more than the 3"),
    (RAGPlugin, {**ON, **VECTORS, "cache_ttl_seconds": 3}, "cache_results"),
    (ShadowDispatchPlugin, ON, "model is required"),
    (ShadowDispatchPlugin, {**ON, "model": "m", "forward_headers": ["Authorization"]}, "credentials"),
    (ContextCompressionPlugin, {**ON, "budget": {"trigger_tokens": 10, "target_tokens": 10}}, "must be less"),
    (ContextCompressionPlugin, {**ON, "targets": {"rag": {"min_tokens": 5, "target_tokens": 9}}}, "must be less"),
    (ContextCompressionPlugin, {**ON, "scoring": {"method": "hybrid"}}, "embedding_model_ref is required"),
    (PromptCachePlugin, {**ON, "targets": []}, "at least 1"),
    (PromptCachePlugin, {**ON, "targets": ["tools", "tools"]}, "twice"),
    (ToolsPlugin, {**ON, "mode": "filtered"}, "needs allow_tools"),
    (ToolsPlugin, {**ON, "allow_tools": ["a"]}, "need mode: filtered"),
    (ToolsPlugin, {**ON, "strip_tool_history": True}, "needs mode: none"),
    (RouterReplay, {"store_backend": "redis", "async_writes": False}, "leave async_writes on"),
    (RateLimit, {"store_backend": "redis", "redis": {"address": "redis"}}, "pattern"),
    (Learning, {"protection": {"enabled": True, "scope": "user"}}, "'conversation' or 'session'"),
]


@pytest.mark.parametrize(("document", "given"), NOT_SUPPORTED)
def test_what_vllm_sr_has_and_this_router_has_not(document: type[Any], given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="is not supported by Headway: ") as caught:
        document.model_validate(given)
    assert [each["type"] for each in caught.value.errors()] == ["not_supported"]


@pytest.mark.parametrize(("document", "key"), [(ToolSelectionPlugin, "sticky"), (ResponseCacheStore, "valkey"), (VectorStore, "milvus"), (Stores, "memory")])
def test_keys_that_are_absent_here_have_their_advice(document: type[Any], key: str) -> None:
    assert document.absent[key]
    with pytest.raises(ValidationError):
        document.model_validate({"enabled": True, key: {}})


@pytest.mark.parametrize(("document", "given", "says"), WRONG)
def test_contradictions(document: type[Any], given: dict[str, Any], says: str) -> None:
    with pytest.raises(ValidationError, match=says.replace("{", r"\{")):
        document.model_validate(given)


@pytest.mark.parametrize("name", ["semantic-cache", "semantic_cache", "response-cache", "response_cache"])
def test_older_names_of_the_cache(name: str) -> None:
    assert DecisionPlugin.model_validate({"type": name, "configuration": {}}).type == "response_cache"
    assert Stores.model_validate({"semantic_cache": {"max_entries": 7}}).response_cache == ResponseCacheStore(max_entries=7)


def test_older_settings_of_the_cache_mean_the_same() -> None:
    older = ResponseCachePlugin.model_validate({**ON, "similarity_threshold": 0.7, "allow_request_controls": True, "control_header": "x-c"})
    assert (older.threshold, older.controls.enabled, older.controls.header) == (0.7, True, "x-c")
    assert set(older.controls.allowed) == {"no-cache", "no-store", "bypass", "max-age", "ttl"}
    newer = ResponseCachePlugin.model_validate({**ON, "semantic": {"similarity_threshold": 0.7}})
    assert (newer.threshold, newer.controls.enabled) == (0.7, False)


def test_what_is_switched_off_may_be_incomplete() -> None:
    off = {"enabled": False}
    for document, more in ((RAGPlugin, {"backend": "vectorstore"}), (ShadowDispatchPlugin, {}), (ToolsPlugin, {"mode": "filtered"})):
        assert document.model_validate({**off, **more}).enabled is False


def test_the_redis_of_replays_has_the_names_of_vllm_sr() -> None:
    settings = RouterReplay.model_validate({"store_backend": "redis", "redis": {"address": "h:1", "db": 2, "use_tls": True, "key_prefix": "k:"}})
    assert settings.redis == ReplayRedis(address="h:1", db=2, tls_enabled=True, key_prefix="k:")
    assert {"tls_skip_verify", "max_retries", "pool_size"} <= set(ReplayRedis.absent)
