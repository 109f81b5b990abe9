"""The plan of `POST /v1/embeddings`: texts and media to vectors, cut to a dimension before they are normalized."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from headway.errors import RequestError, StepError
from headway.runtime.model_facts import EmbeddingFacts
from headway.runtime.row import ItemFailure, Outcome, Row
from headway.runtime.tasks.input_usage import InputUsage, too_long
from headway.runtime.tasks.item_plan import Answered, Item, ItemPlan, failed_item, input_tokens, run_items
from headway.runtime.tasks.media import MediaReader, ReadMedia, UnreadableMedia, refuse_many_media
from headway.runtime.tasks.sentence_layout import SentenceLayout
from headway.runtime.tasks.sequence_text import SequenceText
from headway.runtime.tasks.task_model import RowDetail
from headway.wire.classify import InvalidInput
from headway.wire.embedding_answer import embedding_entry, embedding_list
from headway.wire.embeddings import EmbeddingInput, EmbeddingsRequest, Media, Text, TokenIds

READOUT: Final = "embed"
MakeRow: TypeAlias = Callable[[tuple[int, ...], int | None], Row]
_EPSILON: Final = 1e-12  # of the norm, as in torch.nn.functional.normalize


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a request asks of the model. `layer` None = the last."""

    dimension: int
    layer: int | None
    prompt: str
    allowed: int
    truncate: bool


def embedding_facts(layout: SentenceLayout, modalities: Sequence[str] = ("text",)) -> EmbeddingFacts:
    return EmbeddingFacts(layout.dimensions, layout.layers, layout.normalize, layout.pooling, tuple(modalities), tuple(sorted(layout.prompts)))


class EmbeddingsPlanner:
    """`text.limit` is the most tokens in a text, prompt and special tokens included. `make_row`: token ids, exit -> row.
    `media`: what reads images and sounds, by modality; none for models that read text only."""

    def __init__(
        self, layout: SentenceLayout, text: SequenceText, make_row: MakeRow | None = None, media: Mapping[str, MediaReader] | None = None
    ):
        self._layout = layout
        self._text = text
        self._media = media or {}
        self._make_row: MakeRow = make_row or (lambda ids, layer: Row(ids, READOUT, RowDetail(layer=layer)))

    def __call__(self, request: EmbeddingsRequest) -> Generator[Sequence[Row], Sequence[Outcome], dict[str, Any]]:
        asked = self._asked(request)
        items = self._items(request.inputs, asked)
        if request.single:
            _raise_failure(items[0])
        results = yield from run_items(items)
        if request.single:
            _raise_failure(results[0])
        data = [
            {**embedding_entry(i, result.value, request.base64), "input": result.usage.body()}
            if isinstance(result, Answered)
            else {"object": "embedding", **failed_item(i, result)}
            for i, result in enumerate(results)
        ]
        tokens = input_tokens(results)
        representation: dict[str, Any] = {
            "layer": asked.layer or self._layout.layers[0], "dimension": asked.dimension, "normalized": self._layout.normalize,
        }  # fmt: skip
        if self._media:
            representation |= _modality(request.inputs)
        return {**embedding_list(data, tokens), "meta": {"representation": representation}}

    def _asked(self, request: EmbeddingsRequest) -> _Asked:
        """Raises RequestError for what the model does not have."""
        layout, limit = self._layout, self._text.limit
        refuse_many_media(request.inputs, self._media)
        if request.dimensions is not None and request.dimensions not in layout.dimensions:
            nested = "" if len(layout.dimensions) > 1 else " (its vectors cannot be shortened)"
            raise _wrong("dimensions", f"dimensions must be one of {_listed(layout.dimensions)}{nested}, found {request.dimensions}")
        if request.layer is not None and request.layer not in layout.layers:
            raise _wrong("layer", f"layer must be one of {_listed(layout.layers)}, found {request.layer}")
        if request.layer is not None and len(layout.layers) == 1:
            raise _wrong("layer", "this model has no exits before its last layer: leave layer out")
        if request.input_type is not None and request.input_type not in layout.prompts:
            known = f"one of {', '.join(sorted(layout.prompts))}" if layout.prompts else "left out: this model has no prompts"
            raise _wrong("input_type", f"input_type must be {known}, found {request.input_type!r:.40}")
        least = self._text.single.size + 1
        if request.max_tokens is not None and not least <= request.max_tokens <= limit:
            raise _wrong("options.max_tokens", f"max_tokens must be from {least} to {limit} (special tokens count), found {request.max_tokens}")
        layer = request.layer if request.layer != layout.layers[0] else None
        prompt = layout.default_prompt if request.input_type is None else layout.prompts[request.input_type]
        return _Asked(request.dimensions or layout.dimensions[0], layer, prompt, request.max_tokens or limit, request.overflow == "truncate")

    def _items(self, inputs: Sequence[EmbeddingInput], asked: _Asked) -> list[Item]:
        need = asked.allowed - self._text.single.size + 1
        texts = {i: self._prompted(given.text, asked) for i, given in enumerate(inputs) if isinstance(given, Text)}
        read = dict(zip(texts, self._text.bounded.read_all(list(texts.values()), need), strict=True))
        start = self._text.bounded.read(asked.prompt, need).ids if asked.prompt and len(texts) < len(inputs) else ()
        readers = {modality: reader.for_request() for modality, reader in self._media.items()}
        items: list[Item] = []
        for i, given in enumerate(inputs):
            if isinstance(given, InvalidInput):
                items.append(ItemFailure("invalid_input", given.message))
            elif isinstance(given, Media):
                items.append(self._of_media(i, given, asked, readers))
            elif isinstance(given, TokenIds):
                items.append(self._of_ids(i, given, start, asked))
            elif not given.text.strip() or not read[i].ids:
                items.append(ItemFailure("invalid_input", f"input {i} has no text"))
            else:
                items.append(self._item(i, read[i].ids, not read[i].complete, asked))
        return items

    def _prompted(self, text: str, asked: _Asked) -> str:
        whole = asked.prompt + text
        return whole.strip() if self._layout.strip else whole

    def _of_media(self, index: int, given: Media, asked: _Asked, readers: Mapping[str, ReadMedia]) -> Item:
        read = readers.get(given.modality)
        if read is None:
            return ItemFailure("invalid_input", f"input {index} is {given.modality}, this model reads {' and '.join(['text', *self._media])}")
        try:
            row = read(given.data)
        except UnreadableMedia as problem:
            return ItemFailure("invalid_input", f"input {index} {problem}")
        return ItemPlan((row,), InputUsage(row.cost, row.cost), lambda outcomes: self._vector(outcomes[0], asked.dimension))

    def _of_ids(self, index: int, given: TokenIds, start: Sequence[int], asked: _Asked) -> Item:
        strange = next((token for token in given.ids if not 0 <= token < self._text.vocab_size), None)
        if strange is not None:
            return ItemFailure("invalid_input", f"input {index} holds the token {strange}, ids are from 0 to {self._text.vocab_size - 1}")
        if not given.ids:
            return ItemFailure("invalid_input", f"input {index} has no tokens")
        return self._item(index, (*start, *given.ids), False, asked)

    def _item(self, index: int, ids: Sequence[int], lower_bound: bool, asked: _Asked) -> Item:
        special = self._text.single.size
        tokens = len(ids) + special
        if tokens > asked.allowed and not asked.truncate:
            return too_long(tokens, asked.allowed, lower_bound, f"input {index}")
        row = self._make_row(self._text.single.wrap(ids[: asked.allowed - special]), asked.layer)
        usage = InputUsage(tokens, len(row.token_ids), lower_bound)
        return ItemPlan((row,), usage, lambda outcomes: self._vector(outcomes[0], asked.dimension))

    def _vector(self, pooled: npt.NDArray[np.float32], dimension: int) -> npt.NDArray[np.float32]:
        """Cut, then normalized: a part of a unit vector is shorter than one."""
        vector = pooled[:dimension]
        if not self._layout.normalize:
            return vector
        wide = vector.astype(np.float64)
        length = math.sqrt(wide.dot(wide))  # what numpy.linalg.norm computes, without its ways round; this runs for every call
        return np.asarray(vector / max(length, _EPSILON), dtype=np.float32)


def _modality(inputs: Sequence[EmbeddingInput]) -> dict[str, str]:
    """That of all inputs; left out where they differ."""
    kinds = {given.modality if isinstance(given, Media) else "text" for given in inputs if not isinstance(given, InvalidInput)}
    return {"modality": kinds.pop()} if len(kinds) == 1 else {}


def _raise_failure(found: Item | Answered) -> None:
    """An input that is no list is the whole request, so its failure is that of the request."""
    if isinstance(found, ItemFailure):
        message = (found.message or found.code).replace("input 0 ", "the input ", 1)
        if found.code == "invalid_model_output":
            raise StepError(message, reason=found.code)
        raise RequestError(message, reason=found.code, param="input")


def _listed(values: Sequence[int]) -> str:
    return ", ".join(str(value) for value in values)


def _wrong(name: str, message: str) -> RequestError:
    return RequestError(message, param=name)
