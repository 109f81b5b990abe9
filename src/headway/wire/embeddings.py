"""The body of `POST /v1/embeddings`, checked: OpenAI's fields and those of the model runtime."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, cast

from headway.errors import RequestError
from headway.wire import checked
from headway.wire.classify import COMMON_OPTIONS, MAX_INPUTS, CommonOptions, InvalidInput, common_options, counted


@dataclass(frozen=True, slots=True)
class Text:
    text: str


@dataclass(frozen=True, slots=True)
class TokenIds:
    """Ids without special tokens, as OpenAI clients send them."""

    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Media:
    """Decoded bytes of one image or sound."""

    modality: Literal["image", "audio"]
    data: bytes


EmbeddingInput: TypeAlias = Text | TokenIds | Media | InvalidInput


@dataclass(frozen=True, slots=True)
class EmbeddingsRequest:
    """`single`: the input was no list, so its failure is the failure of the call (400)."""

    inputs: tuple[EmbeddingInput, ...]
    single: bool = False
    dimensions: int | None = None
    layer: int | None = None
    input_type: str | None = None
    base64: bool = False
    overflow: Literal["reject", "truncate"] | None = None
    max_tokens: int | None = None
    options: CommonOptions = field(default_factory=CommonOptions)


MAX_MEDIA_BYTES = 16 * 1024 * 1024
MAX_TOKEN_ID = 2**31 - 1
_FIELDS = frozenset({"model", "input", "dimensions", "layer", "input_type", "encoding_format", "user", "options"})
_OPTIONS = COMMON_OPTIONS | {"overflow", "max_tokens"}
_PARTS = {"text": "text", "image_url": "image_url", "input_audio": "input_audio"}


def parse_embeddings(fields: Mapping[str, Any]) -> EmbeddingsRequest:
    """The checked body. Raises RequestError, reason `invalid_request`, for everything that can be seen without the model.

    A part whose media cannot be read becomes an InvalidInput: its siblings go on.
    """
    checked.only(fields, _FIELDS)
    options = checked.objects(fields, "options")
    checked.only(options, _OPTIONS, "options")
    checked.text(fields, "user")
    given = checked.required(fields, "input")
    inputs = _inputs(given)
    overflow = checked.one_of(options, "overflow", ("reject", "truncate"))
    return EmbeddingsRequest(
        inputs=inputs,
        single=not isinstance(given, list) or _is_ids(given),
        dimensions=checked.whole(fields, "dimensions", 1),
        layer=checked.whole(fields, "layer", 1),
        input_type=checked.one_of(fields, "input_type", ("query", "document")),
        base64=checked.one_of(fields, "encoding_format", ("float", "base64")) == "base64",
        overflow=cast(Literal["reject", "truncate"] | None, overflow),
        max_tokens=checked.whole(options, "max_tokens", 1),
        options=common_options(options),
    )


def _is_ids(value: Any) -> bool:
    return isinstance(value, list) and len(value) > 0 and isinstance(value[0], int) and not isinstance(value[0], bool)


def _inputs(value: Any) -> tuple[EmbeddingInput, ...]:
    if isinstance(value, str):
        return (Text(value),)
    if isinstance(value, dict):
        return (_part(value, "input"),)
    if not isinstance(value, list):
        raise checked.wrong("input", "text, a list of texts, token ids or content parts", value)
    if _is_ids(value):
        return (_ids(value, "input"),)
    return tuple(_input(item, f"input[{index}]") for index, item in enumerate(counted(value, MAX_INPUTS)))


def _input(item: Any, name: str) -> EmbeddingInput:
    if isinstance(item, str):
        return Text(item)
    if isinstance(item, dict):
        return _part(item, name)
    if _is_ids(item):
        return _ids(item, name)
    raise checked.wrong(name, "text, token ids or a content part", item)


def _ids(items: list[Any], name: str) -> TokenIds:
    for item in items:
        if isinstance(item, bool) or not isinstance(item, int):
            raise checked.wrong(name, "a list of token ids", item)
        if not 0 <= item <= MAX_TOKEN_ID:
            raise RequestError(f"{name} has a token id that is not between 0 and {MAX_TOKEN_ID}", param="input")
    return TokenIds(tuple(items))


def _part(item: Mapping[str, Any], name: str) -> EmbeddingInput:
    """`{type, text}`, `{type, image_url: {url}}` or `{type, input_audio: {data, format}}`; `type` may be left out."""
    checked.only(item, {"type", *_PARTS}, name)
    kinds = [kind for kind in _PARTS if item.get(kind) is not None]
    if len(kinds) != 1 or item.get("type", kinds[0]) != kinds[0]:
        raise RequestError(f"{name} must hold exactly one of {', '.join(_PARTS)}, and type, if given, must name it", param="input")
    if kinds[0] == "text":
        return Text(checked.text(item, "text", f"{name}.text") or "")
    return _image(item, name) if kinds[0] == "image_url" else _audio(item, name)


def _image(item: Mapping[str, Any], name: str) -> EmbeddingInput:
    holder = checked.objects(item, "image_url")
    checked.only(holder, {"url", "detail"}, f"{name}.image_url")
    url = checked.text(holder, "url", f"{name}.image_url.url") or ""
    head, comma, data = url.partition(",")
    if not (comma and head.startswith("data:image/") and head.endswith(";base64")):
        raise RequestError(f"{name}.image_url.url must be a base64 data URL of an image: nothing is fetched", param="input")
    return _media("image", data)


def _audio(item: Mapping[str, Any], name: str) -> EmbeddingInput:
    holder = checked.objects(item, "input_audio")
    checked.only(holder, {"data", "format"}, f"{name}.input_audio")
    if holder.get("format", "wav") != "wav":
        raise RequestError(f"{name}.input_audio.format must be wav", param="input")
    return _media("audio", checked.text(holder, "data", f"{name}.input_audio.data") or "")


def _media(modality: Literal["image", "audio"], data: str) -> EmbeddingInput:
    if len(data) // 4 * 3 > MAX_MEDIA_BYTES + 2:
        return InvalidInput(f"the {modality} is larger than {MAX_MEDIA_BYTES} bytes")
    try:
        decoded = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return InvalidInput(f"the {modality} is not valid base64")
    if not decoded:
        return InvalidInput(f"the {modality} is empty")
    return Media(modality, decoded) if len(decoded) <= MAX_MEDIA_BYTES else InvalidInput(f"the {modality} is larger than {MAX_MEDIA_BYTES} bytes")
