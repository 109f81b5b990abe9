"""`images` and `videos` of a decision body: base64 data URLs -> bytes."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from collections.abc import Mapping
from typing import Any, Final, Literal

from headway.wire.decisions import DecisionMedia
from headway.wire.violations import SchemaError, Violation

_LIMITS: Final[Mapping[Literal["image", "video"], int]] = {"image": 8_000_000, "video": 32_000_000}
MEDIA_FIELDS: Final[Mapping[str, Literal["image", "video"]]] = {"images": "image", "videos": "video"}
_DATA_URL: Final = re.compile(r"data:(image|video)/[\w.+-]+;base64,")


def read_media(fields: Mapping[str, Any]) -> tuple[DecisionMedia, ...]:
    """Raises SchemaError for what is no data URL of the right kind, too large, or more than one video."""
    found: list[DecisionMedia] = []
    for name, modality in MEDIA_FIELDS.items():
        given = fields.get(name)
        if given is None:
            continue
        if not isinstance(given, list):
            raise _wrong("expected an array of data URLs", "list_type", name)
        if modality == "video" and len(given) > 1:
            raise _wrong(f"{len(given)} videos, one is the limit", "too_long", name)
        found += [DecisionMedia(modality, _decoded(url, modality, name, i)) for i, url in enumerate(given)]
    return tuple(found)


def _decoded(url: Any, modality: Literal["image", "video"], name: str, at: int) -> bytes:
    start = _DATA_URL.match(url) if isinstance(url, str) else None
    if start is None or start[1] != modality:
        raise _wrong(f"expected a data URL (data:{modality}/...;base64,...)", "value_error", name, at)
    try:
        data = b64decode(url[start.end() :], validate=True)
    except (binascii.Error, ValueError):
        raise _wrong("the data URL holds no valid base64", "value_error", name, at) from None
    if len(data) > _LIMITS[modality]:
        raise _wrong(f"{len(data)} bytes, the limit is {_LIMITS[modality]}", "too_long", name, at)
    return data


def _wrong(message: str, kind: str, *loc: str | int) -> SchemaError:
    return SchemaError([Violation(("body", *loc), message, kind)])
