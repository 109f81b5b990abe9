"""Stores of a configuration document."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator

from headway.router.config.document.node import Node, not_supported
from headway.router.config.document.plugins import Share
from headway.router.config.document.tool_plugins import AdvancedToolFiltering


class RedisTLS(Node):
    enabled: bool = False
    ca_file: str | None = None
    cert_file: str | None = None
    key_file: str | None = None


class RedisConnection(Node):
    """`timeout` is in seconds and bounds each command."""

    host: str = "localhost"
    port: int = Field(default=6379, ge=1, le=65535)
    database: int = Field(default=0, ge=0)
    password: str | None = None
    timeout: int = Field(default=1, ge=1)
    tls: RedisTLS = RedisTLS()


class RedisIndex(Node):
    """Vectors are compared by the router itself, so nothing of Redis' own search index is configured."""

    absent: ClassVar[Mapping[str, str]] = {
        "name": "there is no index; prefix tells the keys of several routers apart",
        "vector_field": "plain Redis is enough: the router compares the vectors of a partition itself",
        "index_type": "plain Redis is enough: the router compares the vectors of a partition itself",
        "params": "plain Redis is enough: the router compares the vectors of a partition itself",
    }

    prefix: str = "headway:cache:"


class RedisSearch(Node):
    """How many of the most similar entries the guard looks at."""

    topk: int = Field(default=5, ge=1, le=100)


class Redis(Node):
    absent: ClassVar[Mapping[str, str]] = {
        "development": "there is no index to create or drop",
        "logging": "use the router's --log-level",
    }

    connection: RedisConnection = RedisConnection()
    index: RedisIndex = RedisIndex()
    search: RedisSearch = RedisSearch()


_ONLY = "only backend_type memory, sqlite and redis are built"


class ResponseCacheStore(Node):
    """Where decisions with a `response_cache` plugin keep answers.

    `memory` ends with the process, `sqlite` (a file in the router's state folder) and `redis` do not. `similarity_threshold` holds for decisions
    that name none. `ttl_seconds: 0` keeps entries until they are evicted.
    """

    absent: ClassVar[Mapping[str, str]] = {"valkey": _ONLY, "milvus": _ONLY, "qdrant": _ONLY}

    backend_type: Literal["memory", "sqlite", "redis"] = "memory"
    enabled: bool = True
    similarity_threshold: Share = 0.9
    max_entries: int = Field(default=1000, ge=1)
    ttl_seconds: int = Field(default=3600, ge=0)
    eviction_policy: Literal["fifo", "lru", "lfu"] = "fifo"
    redis: Redis = Redis()
    embedding_model: str | None = None

    @field_validator("backend_type", mode="before")
    @classmethod
    def _know_the_others(cls, value: Any) -> Any:
        if value in ("valkey", "milvus", "qdrant", "hybrid"):
            raise not_supported(f"backend_type {value}", _ONLY)
        return value


class VectorStoreMemory(Node):
    max_entries_per_store: int = Field(default=100_000, ge=1)


_LOCAL = "only the local store (backend_type: memory) is built"


class VectorStore(Node):
    """Documents for rag: text in SQLite, vectors in process. `metadata_store: memory` forgets them with the process."""

    absent: ClassVar[Mapping[str, str]] = dict.fromkeys(("milvus", "llama_stack", "valkey", "qdrant", "metadata_postgres"), _LOCAL)

    enabled: bool = False
    backend_type: Literal["memory"] = "memory"
    file_storage_dir: str | None = None
    max_file_size_mb: int = Field(default=50, ge=1, le=1024)
    embedding_model: str | None = None
    embedding_dimension: int | None = Field(default=None, ge=1)
    ingestion_workers: int = Field(default=2, ge=1, le=16)
    ingestion_drain_timeout_seconds: int = Field(default=10, ge=0)
    supported_formats: list[str] = [".txt", ".md", ".json", ".csv", ".html"]
    memory: VectorStoreMemory = VectorStoreMemory()
    metadata_store: Literal["sqlite", "memory"] = "sqlite"

    @field_validator("backend_type", "metadata_store", mode="before")
    @classmethod
    def _know_the_others(cls, value: Any) -> Any:
        if value in ("milvus", "llama_stack", "valkey", "qdrant", "postgres"):
            raise not_supported(str(value), _LOCAL)
        return value


class Tools(Node):
    """The tools that `tool_selection` adds from, and what a decision that names nothing gets. `enabled` opens the database to them."""

    enabled: bool = False
    top_k: int = Field(default=3, ge=1)
    similarity_threshold: Share | None = None
    tools_db_path: str | None = None
    fallback_to_empty: bool = True
    advanced_filtering: AdvancedToolFiltering | None = None


class Looper(Node):
    """`timeout_seconds` is what all models of one cascade have together."""

    absent: ClassVar[Mapping[str, str]] = {
        "flow": "workflows are not built",
        "endpoint": "it is ignored since the router calls backends itself",
        "headers": "not built",
        "grpc_max_msg_size_mb": "there is no gRPC here",
        "max_response_bytes_mb": "answers have at most 64 MiB",
    }

    timeout_seconds: int = Field(default=1200, ge=1)


class Stores(Node):
    absent: ClassVar[Mapping[str, str]] = {
        "memory": "long-term memory is not built; rag over a local vector store is",
        "tool_sessions": "sticky tool sessions are not built",
    }

    other_names: ClassVar[Mapping[str, str]] = {"semantic_cache": "response_cache"}

    response_cache: ResponseCacheStore | None = None
    vector_store: VectorStore | None = None


class Integrations(Node):
    absent: ClassVar[Mapping[str, str]] = {
        "kv_transfer": "use prefill_refs of a model, whose engines hand KV blocks to its backends",
    }

    tools: Tools | None = None
    looper: Looper | None = None
