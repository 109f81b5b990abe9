"""The name of the model in a body that is otherwise passed on byte by byte: writing a body with images anew would cost tens of milliseconds."""

from __future__ import annotations

import re
from collections.abc import Iterator

import orjson

from headway.errors import RequestError

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\]]', re.DOTALL)
_COLON = re.compile(rb"\s*:\s*")
_START = re.compile(rb"\s*\{\s*")
_OPEN, _CLOSE = b"{[", b"}]"
_MOST_MARKS = 100_000  # quotation marks: looking at more strings one by one takes longer than writing them anew


def with_model(raw: bytes, name: str) -> bytes:
    """`raw`, a JSON object, with `name` as its `model`, which is added when there is none. Raises RequestError for a model that is no text."""
    if raw.count(b'"') > _MOST_MARKS:
        return _written_anew(raw, name)
    new = orjson.dumps(name)
    parts: list[bytes] = []
    at = 0
    for start, end in _model_values(raw):
        parts += [raw[at:start], new]
        at = end
    if parts:
        return b"".join([*parts, raw[at:]])
    head = _START.match(raw)
    if head is None:
        raise RequestError("The body must be a JSON object", reason="body_invalid")
    rest = raw[head.end() :]
    return b'{"model":' + new + (b"" if rest.startswith(b"}") else b",") + rest


def _written_anew(raw: bytes, name: str) -> bytes:
    body = orjson.loads(raw)
    if not isinstance(body, dict) or not isinstance(body.get("model", ""), str):
        raise RequestError("model must be the name of a model", param="model", reason="body_invalid")
    return orjson.dumps({**body, "model": name})


def _model_values(raw: bytes) -> Iterator[tuple[int, int]]:
    """Where the values of `model` stand in the object itself; a body may have the key twice."""
    depth = 0
    wanted = False
    for token in _TOKEN.finditer(raw):
        text = token.group()
        if text in _OPEN:
            depth += 1
        elif text in _CLOSE:
            depth -= 1
        elif wanted:
            wanted = False
            yield token.span()
            continue
        elif depth == 1 and (colon := _COLON.match(raw, token.end())) is not None and _is_model(text):
            if raw[colon.end() : colon.end() + 1] != b'"':
                raise RequestError("model must be the name of a model", param="model", reason="body_invalid")
            wanted = True


def _is_model(text: bytes) -> bool:
    return text == b'"model"' or (b"\\" in text and orjson.loads(text) == "model")
