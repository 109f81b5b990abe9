"""Labels of a classifier, by number, as its config states them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headway.errors import ArtifactError


def labels_of(config: Mapping[str, Any], count: int) -> tuple[str, ...]:
    """`id2label` for `count` logits. A config without it means LABEL_0, LABEL_1, ... as in transformers.

    Raises ArtifactError (`invalid_model_config`) unless it names each of 0 to count - 1, all differently.
    """
    stated = config.get("id2label")
    if stated is None:
        return tuple(f"LABEL_{i}" for i in range(count))
    if not isinstance(stated, dict) or {str(key) for key in stated} != {str(i) for i in range(count)}:
        found = f"{len(stated)} labels" if isinstance(stated, dict) else f"{stated!r:.60}"
        raise _wrong(f"must name the labels 0 to {count - 1} of the weights, found {found}")
    labels = tuple(str(stated[str(i)]) for i in range(count))
    if len(set(labels)) != count:
        raise _wrong("names two labels alike")
    return labels


def _wrong(what: str) -> ArtifactError:
    return ArtifactError(f"config.json: id2label {what}", reason="invalid_model_config", param="id2label",
                         fix="Check that config.json belongs to these weights.")  # fmt: skip
