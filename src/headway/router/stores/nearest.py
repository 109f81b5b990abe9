"""Nearest: the most similar of a set of vectors that grows and shrinks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from usearch.index import Index

Vector: TypeAlias = npt.NDArray[np.float32]
_SMALL = 512  # up to here comparing with all is faster than a graph, and exact; an index of usearch takes some 50 kB when empty


class Nearest:
    """Unit vectors of one width under integer keys. Similarity is the cosine. Not for several threads at once."""

    def __init__(self) -> None:
        self._vectors: dict[int, Vector] = {}
        self._matrix: npt.NDArray[np.float32] | None = None
        self._index: Index | None = None

    def __len__(self) -> int:
        return len(self._vectors)

    def add(self, key: int, vector: Vector) -> None:
        """Raises ValueError for a vector of another width than those that are there, and for one that is not finite."""
        if not np.isfinite(vector).all():
            raise ValueError("a vector holds a number that is not finite")
        if self._vectors and next(iter(self._vectors.values())).shape != vector.shape:
            raise ValueError(f"a vector of {vector.shape[0]} numbers does not belong to this set")
        self.remove(key)
        self._vectors[key] = vector
        self._matrix = None
        if self._index is not None:
            self._index.add(key, vector)
        elif len(self._vectors) > _SMALL:
            from usearch.index import Index

            self._index = Index(ndim=vector.shape[0], metric="ip", dtype="f32")
            self._index.add(np.fromiter(self._vectors, dtype=np.uint64), np.stack(list(self._vectors.values())))

    def remove(self, key: int) -> None:
        if self._vectors.pop(key, None) is not None:
            self._matrix = None
            if self._index is not None:
                self._index.remove(key)

    def search(self, vector: Vector, limit: int) -> Sequence[tuple[int, float]]:
        """Keys and similarities, the most similar first."""
        if not self._vectors or next(iter(self._vectors.values())).shape != vector.shape:
            return []
        if self._index is not None:
            found = self._index.search(vector, limit)
            return [(int(key), 1.0 - float(distance)) for key, distance in zip(found.keys, found.distances, strict=True)]
        if self._matrix is None:
            self._matrix = np.stack(list(self._vectors.values()))
        similarities = self._matrix @ vector
        keys = list(self._vectors)
        return [(keys[at], float(similarities[at])) for at in np.argsort(-similarities, kind="stable")[:limit]]
