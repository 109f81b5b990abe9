"""Card: what a model runtime says of one of its models, as far as the router needs it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

import orjson

# What may differ between replicas of the same model: where and how it runs, and how far it is.
_OF_THE_PLACE = frozenset({
    "id", "created", "device", "engine", "dtype", "accelerator", "accelerator_validated", "ready", "status", "reason", "golden", "plugins", "notes",
    "enable_shared_context", "batch_window_ms", "max_num_seqs",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Head:
    """`kind`: sequence, scores or token. `operating_point` is the SHA-256 of its thresholds, if it has any."""

    name: str
    kind: str
    labels: tuple[str, ...]
    inputs: tuple[str, ...] = ()
    operating_point: str | None = None


@dataclass(frozen=True, slots=True)
class Card:
    """`heads` in the model's order, the primary one first. `exits` are the trained (layer, dimension) pairs of a pair scorer.
    `joins_states`: one call may ask about several states (2.2 of the API). `identity` is equal for the same model, wherever it runs."""

    id: str
    surfaces: frozenset[str]
    question_types: frozenset[str]
    heads: Mapping[str, Head]
    dimensions: tuple[int, ...]
    layers: tuple[int, ...]
    exits: tuple[tuple[int, int], ...]
    limits: Mapping[str, int]
    model_sha256: str
    repo: str | None
    revision: str | None
    ready: bool
    joins_states: bool
    identity: str
    raw: Mapping[str, Any] = field(repr=False)

    @property
    def representation(self) -> str:
        """What its vectors are stored under, at their default size and layer."""
        return f"{self.model_sha256}/layer-{self.layers[0] if self.layers else 0}/{self.dimensions[0] if self.dimensions else 0}"

    @property
    def truncates(self) -> bool:
        """Whether questions may ask for the beginning of a long state only."""
        return "truncate_tokens" in self.limits


def cards_of(body: bytes) -> dict[str, Card]:
    """All models of `GET /v1/models`, by id. Raises ValueError for what is no such document."""
    document = orjson.loads(body)
    if not isinstance(document, dict) or not isinstance(document.get("data"), list):
        raise ValueError("no list of models")
    joins = api_version(document) >= (2, 2)
    cards = (_card(each, joins) for each in document["data"] if isinstance(each, dict) and isinstance(each.get("id"), str))
    return {card.id: card for card in cards}


def api_version(document: Mapping[str, Any]) -> tuple[int, int]:
    """Major and minor number; that of the first version for a document that names none."""
    major, _, rest = str(document.get("api_version", "2.0")).partition(".")
    minor = rest.partition(".")[0]
    return (int(major), int(minor)) if major.isdecimal() and minor.isdecimal() else (0, 0)


def _card(raw: Mapping[str, Any], joins_states: bool) -> Card:
    heads = [head for head in _list(raw.get("heads")) if isinstance(head, dict) and isinstance(head.get("name"), str)]
    embedding = raw.get("embedding") if isinstance(raw.get("embedding"), dict) else {}
    rerank = raw.get("rerank") if isinstance(raw.get("rerank"), dict) else {}
    limits = raw.get("limits") if isinstance(raw.get("limits"), dict) else {}
    assert isinstance(embedding, dict)
    assert isinstance(rerank, dict)
    assert isinstance(limits, dict)
    same = {key: value for key, value in raw.items() if key not in _OF_THE_PLACE}
    return Card(
        id=raw["id"],
        surfaces=frozenset(_texts(raw.get("surfaces"))),
        question_types=frozenset(_texts(raw.get("question_types"))),
        heads={head["name"]: _head(head) for head in heads},
        dimensions=_numbers(embedding.get("dimensions")),
        layers=_numbers(embedding.get("layers")),
        exits=tuple((each["layer"], each["dimension"]) for each in _list(rerank.get("exits")) if isinstance(each, dict) and {"layer", "dimension"} <= each.keys()),
        limits={key: value for key, value in limits.items() if isinstance(value, int)},
        model_sha256=_text(raw.get("model_sha256")) or "",
        repo=_text(raw.get("repo")),
        revision=_text(raw.get("revision")),
        ready=raw.get("ready") is True,
        joins_states=joins_states,
        identity=sha256(json.dumps(same, sort_keys=True, default=str).encode()).hexdigest(),
        raw=raw,
    )


def _head(raw: Mapping[str, Any]) -> Head:
    labels, inputs = _texts(raw.get("labels")), _texts(raw.get("inputs"))
    return Head(raw["name"], str(raw.get("kind")), labels, inputs, _text(raw.get("operating_point_sha256")))


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, list) else []


def _texts(value: Any) -> tuple[str, ...]:
    return tuple(each for each in _list(value) if isinstance(each, str))


def _numbers(value: Any) -> tuple[int, ...]:
    return tuple(each for each in _list(value) if isinstance(each, int))


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
