"""Rows that can be learned from: three topics, each with its best model, told by words and by vectors of those words."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path
from typing import Any

import numpy as np

TOPICS: dict[str, tuple[str, list[str]]] = {
    "coder": ("code", ["function", "loop", "compile", "python", "bug", "variable", "class", "stack", "parser", "thread"]),
    "solver": ("math", ["integral", "prove", "matrix", "prime", "angle", "equation", "limit", "sum", "vector", "triangle"]),
    "talker": ("chat", ["hello", "weather", "movie", "dinner", "weekend", "friend", "music", "holiday", "story", "garden"]),
}
FILLERS = ["please", "the", "a", "my", "about", "with", "and", "tell", "can", "you", "how", "for"]
_WIDTH = 96


def vector(text: str) -> list[float]:
    """A bag of hashed words: nothing of it knows about topics."""
    found = np.zeros(_WIDTH)
    for word in text.split():
        digest = hashlib.sha256(word.encode()).digest()
        found[digest[0] % _WIDTH] += 1 if digest[1] % 2 else -1
    return [float(value) for value in (found if found.any() else np.ones(_WIDTH))]


def rows(count: int, seed: int, noise: float = 0.1, scores: bool = False, embeddings: bool = True) -> list[dict[str, Any]]:
    """`talker` is the best model of half the rows; in a share of `noise` the best model is another one than the topic's."""
    chance = random.Random(seed)
    found = []
    for _ in range(count):
        best = chance.choices(list(TOPICS), weights=[1, 1, 2])[0]
        words = chance.choices(TOPICS[best][1], k=4) + chance.choices(FILLERS, k=5)
        chance.shuffle(words)
        if chance.random() < noise:
            best = chance.choice(list(TOPICS))
        row: dict[str, Any] = {"text": " ".join(words)}
        row |= {"scores": {name: 0.9 if name == best else 0.4 for name in TOPICS}} if scores else {"model": best}
        row |= {"embedding": vector(row["text"])} if embeddings else {}
        found.append(row)
    return found


def written(path: Path, found: list[dict[str, Any]]) -> Path:
    path.write_text("\n".join(json.dumps(row) for row in found))
    return path
