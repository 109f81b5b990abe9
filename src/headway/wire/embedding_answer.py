"""Vectors in an answer."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import numpy.typing as npt


def encoded(vector: npt.NDArray[np.float32], as_base64: bool) -> Any:
    """Base64 of little-endian float32, or the array: JSON holds the shortest decimals that are those float32 again."""
    return base64.b64encode(vector.astype("<f4").tobytes()).decode("ascii") if as_base64 else np.ascontiguousarray(vector)


def embedding_entry(index: int, vector: npt.NDArray[np.float32], as_base64: bool) -> dict[str, Any]:
    return {"object": "embedding", "index": index, "embedding": encoded(vector, as_base64)}


def embedding_list(data: list[dict[str, Any]], tokens: int) -> dict[str, Any]:
    """The list that OpenAI clients read; `data` are entries, in the order of the inputs."""
    return {"object": "list", "data": data, "usage": {"prompt_tokens": tokens, "total_tokens": tokens}}
