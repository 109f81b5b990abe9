"""Ids of requests: what the client sent if it is harmless, else one of our own."""

from __future__ import annotations

import re
import uuid

from fastapi import Request

_HARMLESS = re.compile(r"[A-Za-z0-9._:@/+=-]{1,128}")


def public_id(request: Request, from_body: str | None) -> str:
    """The suffix of the answer's id: header `X-Request-Id`, else `request_id` of the body, else a new one."""
    for given in (request.headers.get("x-request-id"), from_body):
        if given and _HARMLESS.fullmatch(given):
            return given
    assigned: str = request.scope.get("state", {}).get("request_id") or uuid.uuid4().hex
    return assigned


def engine_id(answer_id: str, index: int) -> str:
    """Unique even if clients repeat their ids."""
    return f"{answer_id}-{index}-{uuid.uuid4().hex[:8]}"
