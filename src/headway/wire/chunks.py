"""Stream chunks as bytes. What stays the same in a request is encoded once; a chunk costs a few microseconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

_NULL = b"null"


def _json(value: Any) -> bytes:
    return _NULL if value is None else orjson.dumps(value)


class ChunkEncoder:
    """Frames of one streamed answer: constant id, object, created and model around changing choices."""

    def __init__(self, id: str, object: str, created: int, model: str, fingerprint: str | None):
        constant = orjson.dumps({"id": id, "object": object, "created": created, "model": model})
        self._head = b"data: " + constant[:-1] + b',"choices":['
        self._fingerprint = b"" if fingerprint is None else b',"system_fingerprint":' + orjson.dumps(fingerprint)

    def frame(self, choice: bytes, usage: bytes | None = None, extra: bytes = b"", last: bool = False) -> bytes:
        """`choice` and `usage` are JSON; `extra` are further top-level members, each with a leading comma.

        The fingerprint goes out with the last chunk only. Without a choice this is the closing usage chunk.
        """
        return b"".join(
            (
                self._head,
                choice,
                b"]",
                b"" if usage is None else b',"usage":' + usage,
                self._fingerprint if last else b"",
                extra,
                b"}\n\n",
            )
        )


def completion_choice(
    index: int,
    text: str,
    logprobs: Any = None,
    finish_reason: str | None = None,
    stop_reason: int | str | None = None,
    token_ids: Sequence[int] | None = None,
    prompt_token_ids: Sequence[int] | None = None,
) -> bytes:
    parts = [b'{"index":%d,"text":%b,"logprobs":%b' % (index, orjson.dumps(text), _json(logprobs))]
    parts.append(_ending(finish_reason, stop_reason))
    if prompt_token_ids is not None:
        parts.append(b',"prompt_token_ids":' + orjson.dumps(prompt_token_ids))
    if token_ids is not None:
        parts.append(b',"token_ids":' + orjson.dumps(token_ids))
    parts.append(b"}")
    return b"".join(parts)


def chat_choice(
    index: int,
    text: str,
    role: str | None = None,
    logprobs: Any = None,
    finish_reason: str | None = None,
    stop_reason: int | str | None = None,
    token_ids: Sequence[int] | None = None,
) -> bytes:
    """`role` is given in the first chunk of a choice."""
    begin = b"{" if role is None else b'{"role":' + orjson.dumps(role) + b","
    return chat_delta(index, begin + b'"content":' + orjson.dumps(text) + b"}", logprobs, finish_reason, stop_reason, token_ids)


def chat_delta(
    index: int,
    delta: bytes,
    logprobs: Any = None,
    finish_reason: str | None = None,
    stop_reason: int | str | None = None,
    token_ids: Sequence[int] | None = None,
) -> bytes:
    """`delta` is a JSON object."""
    parts = [b'{"index":%d,"delta":' % index, delta, b',"logprobs":', _json(logprobs), _ending(finish_reason, stop_reason)]
    if token_ids is not None:
        parts.append(b',"token_ids":' + orjson.dumps(token_ids))
    parts.append(b"}")
    return b"".join(parts)


def _ending(finish_reason: str | None, stop_reason: int | str | None) -> bytes:
    if finish_reason is None:
        return b',"finish_reason":null'
    return b',"finish_reason":' + orjson.dumps(finish_reason) + b',"stop_reason":' + _json(stop_reason)
