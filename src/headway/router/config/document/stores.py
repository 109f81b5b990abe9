"""Stores of a configuration document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from headway.router.config.document.node import Node
from headway.router.config.document.tool_plugins import AdvancedToolFiltering


class Redis(Node):
    connection: dict[str, Any] | None = None
    index: dict[str, Any] | None = None
    search: dict[str, Any] | None = None
    development: dict[str, Any] | None = None
    logging: dict[str, Any] | None = None


class ResponseCacheStore(Node):
    absent: ClassVar[Mapping[str, str]] = {
        "valkey": "only backend_type memory and redis are built",
        "milvus": "only backend_type memory and redis are built",
        "qdrant": "only backend_type memory and redis are built",
    }

    backend_type: str | None = None
    enabled: bool | None = None
    similarity_threshold: float | None = None
    max_entries: int | None = None
    ttl_seconds: int | None = None
    eviction_policy: str | None = None
    redis: Redis | None = None
    embedding_model: str | None = None


class VectorStoreMemory(Node):
    max_entries_per_store: int | None = None


class VectorStore(Node):
    absent: ClassVar[Mapping[str, str]] = {
        "milvus": "only the local store (backend_type: memory) is built",
        "llama_stack": "only the local store (backend_type: memory) is built",
        "valkey": "only the local store (backend_type: memory) is built",
        "qdrant": "only the local store (backend_type: memory) is built",
        "metadata_postgres": "only the local store (backend_type: memory) is built",
    }

    enabled: bool | None = None
    backend_type: str | None = None
    file_storage_dir: str | None = None
    max_file_size_mb: int | None = None
    embedding_model: str | None = None
    embedding_dimension: int | None = None
    ingestion_workers: int | None = None
    ingestion_drain_timeout_seconds: int | None = None
    supported_formats: list[str] | None = None
    memory: VectorStoreMemory | None = None
    metadata_store: str | None = None


class Tools(Node):
    enabled: bool | None = None
    top_k: int | None = None
    similarity_threshold: float | None = None
    tools_db_path: str | None = None
    fallback_to_empty: bool | None = None
    advanced_filtering: AdvancedToolFiltering | None = None


class Looper(Node):
    absent: ClassVar[Mapping[str, str]] = {
        "flow": "workflows are not built",
        "endpoint": "it is ignored since the router calls backends itself",
        "headers": "not built",
        "grpc_max_msg_size_mb": "there is no gRPC here",
    }

    max_response_bytes_mb: int | None = None
    timeout_seconds: int | None = None


class Stores(Node):
    absent: ClassVar[Mapping[str, str]] = {
        "memory": "long-term memory is not built; rag over a local vector store is",
        "tool_sessions": "sticky tool sessions are not built",
    }

    response_cache: ResponseCacheStore | None = None
    vector_store: VectorStore | None = None


class Integrations(Node):
    absent: ClassVar[Mapping[str, str]] = {
        "kv_transfer": "moving KV caches between backends is not built",
    }

    tools: Tools | None = None
    looper: Looper | None = None
