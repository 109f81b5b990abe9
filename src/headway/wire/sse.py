"""Framing of server-sent events as OpenAI clients expect it: `data: JSON`, an empty line, at the end `[DONE]`."""

from __future__ import annotations

from headway.wire.errors import error_bytes

CONTENT_TYPE = "text/event-stream; charset=utf-8"
DONE = b"data: [DONE]\n\n"
KEEP_ALIVE = b": keep-alive\n\n"


def frame(payload: bytes) -> bytes:
    """One event. `payload` is JSON on one line."""
    return b"data: " + payload + b"\n\n"


def error_frame(error: BaseException) -> bytes:
    """An error after the stream has begun; the caller still ends the stream with DONE."""
    return frame(error_bytes(error))


def named_frame(name: str, payload: bytes) -> bytes:
    """One event with a name, as Responses and Messages have them."""
    return b"event: " + name.encode() + b"\n" + frame(payload)
