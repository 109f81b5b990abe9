"""The headers of an answer: which model was chosen and why, as far as everybody may know it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TypeAlias

from headway.router.request.context import RequestContext
from headway.router.request.reply import Reply

RawHeaders: TypeAlias = list[tuple[bytes, bytes]]
SCHEMA = (b"x-vsr-schema-version", b"2")
STREAM: tuple[tuple[bytes, bytes], ...] = ((b"cache-control", b"no-cache"), (b"x-accel-buffering", b"no"))
"""Of event streams: proxies on the way neither keep nor collect them."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")
_MOST_BYTES = 8192
_OURS = frozenset({"content-length", "content-type", "transfer-encoding", "connection", "content-encoding", "keep-alive", "date"})


def routing_headers(context: RequestContext, path: str) -> RawHeaders:
    """What routing decided. `path` says how the answer came about."""
    generation, selection, decision = context.generation, context.selection, context.decision
    found: RawHeaders = [
        SCHEMA,
        (b"x-vsr-response-path", path.encode()),
        (b"x-vsr-config-version", b"%d" % generation.version),
        (b"x-request-id", context.request_id.encode("latin-1", "replace")),
    ]
    if context.recipe is not None:
        found.append((b"x-vsr-selected-recipe", header_value(context.recipe.name)))
    if decision is not None and decision.chosen is not None:
        found.append((b"x-vsr-selected-decision", header_value(decision.chosen)))
        if decision.confidence is not None and len(decision.matched_rules) == 1:  # a mean of several pieces of evidence is none of them
            found.append((b"x-vsr-selected-confidence", b"%.4f" % decision.confidence))
    if selection is not None:
        found.append((b"x-vsr-selected-algorithm", header_value(selection.method)))
        if selection.model is not None:
            found.append((b"x-vsr-selected-model", header_value(selection.model)))
    if context.timings_ms:
        found.append((b"x-vsr-routing-latency-ms", b"%.3f" % sum(context.timings_ms.values())))
    if context.cache_status is not None:
        found.append((b"x-vsr-cache-hit", b"true" if context.cache_status == "hit" else b"false"))
    if path == "fast_response":
        found.append((b"x-vsr-fast-response", b"true"))
    if context.replay_id is not None:
        found.append((b"x-vsr-replay-id", header_value(context.replay_id)))
    if context.warnings:
        found.append((b"x-vsr-response-warnings", header_value(",".join(context.warnings))))
    found += safe_headers(context.response_headers)
    return found


def reply_headers(reply: Reply) -> RawHeaders:
    """Those of the backend or of a plugin; how the body is framed is decided here, not there."""
    return safe_headers(reply.headers)


def safe_headers(headers: Mapping[str, str]) -> RawHeaders:
    """No name or value can end a line: what is not allowed in a header is left out (names) or replaced by a space (values)."""
    return [(name.lower().encode(), header_value(value)) for name, value in headers.items() if _is_name(name) and name.lower() not in _OURS]


def joined(*parts: Iterable[tuple[bytes, bytes]]) -> RawHeaders:
    """Later parts win over earlier ones of the same name."""
    found: dict[bytes, bytes] = {}
    for part in parts:
        found.update(part)
    return list(found.items())


def header_value(text: str) -> bytes:
    if not text.isprintable():
        text = _CONTROL.sub(" ", text)
    return text.strip().encode("utf-8", "replace")[:_MOST_BYTES]


def _is_name(name: str) -> bool:
    return name.isascii() and name.replace("-", "").replace("_", "").isalnum()
