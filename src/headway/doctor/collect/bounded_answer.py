"""One answer over HTTP with a limit on its size and on the time that all of it may take."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import httpx

ANSWER_BYTES: Final = 8 << 20
_QUICK_SECONDS: Final = 10.0


@dataclass(frozen=True, slots=True)
class Bounded:
    """`text`: the body as UTF-8, cut at the limit."""

    status: int
    text: str

    def json(self) -> Any:
        """Raises ValueError when the body is no JSON."""
        try:
            return json.loads(self.text)
        except RecursionError as error:
            raise ValueError("nested too deeply") from error


def ask(client: httpx.Client, url: str, body: Mapping[str, Any] | None = None, seconds: float | None = None) -> Bounded:
    """GET, or POST of a JSON `body`. `seconds` defaults to the client's own limit, for a GET to no more than ten: health, models
    and metrics are answered at once or not at all. Raises httpx.HTTPError, httpx.InvalidURL; a body that drips longer than
    that is a ReadTimeout."""
    own = client.timeout.read or _QUICK_SECONDS
    limit = seconds if seconds is not None else own if body is not None else min(own, _QUICK_SECONDS)
    end = time.monotonic() + limit
    kept = bytearray()
    timeout = httpx.Timeout(limit, connect=client.timeout.connect)
    with client.stream("GET" if body is None else "POST", url, json=None if body is None else dict(body), timeout=timeout) as response:
        for piece in response.iter_bytes():
            kept += piece
            if len(kept) >= ANSWER_BYTES:
                break
            if time.monotonic() > end:
                raise httpx.ReadTimeout(f"the answer was not complete after {limit:g} s", request=response.request)
    return Bounded(response.status_code, bytes(kept[:ANSWER_BYTES]).decode("utf-8", "replace"))
