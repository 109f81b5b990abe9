"""What a vector store holds, as its API shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class StoredFile:
    id: str
    name: str
    size: int
    created: int
    purpose: str = "assistants"

    def described(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "object": "file",
            "filename": self.name,
            "bytes": self.size,
            "created_at": self.created,
            "purpose": self.purpose,
            "status": "processed",
        }


@dataclass(frozen=True, slots=True)
class Attached:
    """A file in a store. `status`: in_progress, completed, failed (with `error`)."""

    store: str
    file: str
    name: str
    status: str
    created: int
    error: str | None = None
    chunks: int = 0
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def described(self) -> dict[str, Any]:
        return {
            "id": self.file,
            "object": "vector_store.file",
            "vector_store_id": self.store,
            "filename": self.name,
            "status": self.status,
            "created_at": self.created,
            "last_error": {"code": "ingestion_failed", "message": self.error} if self.error else None,
            "chunks": self.chunks,
            "attributes": dict(self.attributes),
        }


@dataclass(frozen=True, slots=True)
class Store:
    """`files` by status. Chunks with vectors of another model than the one that answers now are counted too, and are not found."""

    id: str
    name: str
    created: int
    metadata: Mapping[str, Any]
    files: Mapping[str, int] = field(default_factory=dict)
    chunks: int = 0

    def described(self) -> dict[str, Any]:
        counts = {status: self.files.get(status, 0) for status in ("in_progress", "completed", "failed")}
        return {
            "id": self.id,
            "object": "vector_store",
            "name": self.name,
            "created_at": self.created,
            "metadata": dict(self.metadata),
            "status": "in_progress" if counts["in_progress"] else "completed",
            "file_counts": {**counts, "total": sum(counts.values())},
            "chunks": self.chunks,
        }


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of a file that was found. `score` is the cosine."""

    chunk: int
    file: str
    name: str
    text: str
    score: float
    attributes: Mapping[str, Any] = field(default_factory=dict)

    def described(self) -> dict[str, Any]:
        return {
            "file_id": self.file,
            "filename": self.name,
            "score": self.score,
            "attributes": dict(self.attributes),
            "content": [{"type": "text", "text": self.text}],
        }
