"""Entry: one answer that may be given again, and to which requests."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import orjson

from headway.router.stores.nearest import Vector


@dataclass(frozen=True, slots=True)
class Entry:
    """`partition` is the identity of everything but the text of the latest user turn: only requests of the same partition can get the answer.
    `exact` is the identity of the whole request. `query` is that text, for the guard and for embedding it again.

    `vector` is of length 1 and belongs to `representation`, what made it: vectors of different representations are never compared. Both are
    empty for an answer that only the same request gets. Times are seconds of the wall clock, so that they hold on other machines and after a
    restart; `expires` is None for never. `body` is the chat completion as JSON.
    """

    id: str
    partition: str
    exact: str
    query: str
    body: bytes
    created: float
    expires: float | None
    representation: str = ""
    vector: Vector | None = None
    recipe: str = ""
    decision: str = ""
    model: str = ""
    scope: str = ""
    warnings: tuple[str, ...] = ()

    @property
    def is_over(self) -> bool:
        return self.expires is not None and time.time() >= self.expires

    @property
    def age(self) -> float:
        return max(0.0, time.time() - self.created)

    def described(self) -> dict[str, Any]:
        """For people: nothing of the request or the answer."""
        return {
            "id": self.id,
            "recipe": self.recipe,
            "decision": self.decision,
            "model": self.model,
            "scope": self.scope,
            "created_at": int(self.created),
            "expires_at": None if self.expires is None else int(self.expires),
            "age_seconds": int(self.age),
            "representation": self.representation or None,
            "bytes": len(self.body),
        }


_FACTS = ("id", "partition", "exact", "query", "created", "expires", "representation", "recipe", "decision", "model", "scope", "warnings")


def facts_of(entry: Entry) -> bytes:
    """Everything but the body and the vector, as JSON."""
    return orjson.dumps({name: getattr(entry, name) for name in _FACTS})


def entry_of(facts: bytes, body: bytes, vector: bytes | None) -> Entry:
    """The inverse of storing. Raises ValueError for bytes that are no entry."""
    try:
        found = orjson.loads(facts)
        made = Entry(**{**{name: found[name] for name in _FACTS}, "warnings": tuple(found["warnings"])}, body=body)
    except (KeyError, TypeError) as error:
        raise ValueError("these bytes are no entry of a response cache") from error
    if not vector:
        return made
    numbers = np.frombuffer(vector, dtype="<f4").astype(np.float32)
    if not np.isfinite(numbers).all() or abs(float(np.linalg.norm(numbers)) - 1.0) > 1e-2:
        raise ValueError("the vector of an entry is damaged")
    return replace(made, vector=numbers)


def vector_bytes(entry: Entry) -> bytes:
    return b"" if entry.vector is None else entry.vector.astype("<f4").tobytes()
