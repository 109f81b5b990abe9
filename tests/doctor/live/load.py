"""Clients that keep a server busy while the doctor looks."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx

Body = Callable[[int], dict[str, Any]]


@contextmanager
def clients(url: str, number: int, body: Body, pause: float = 0.0, warm_seconds: float = 1.5) -> Iterator[None]:
    """`number` clients, each sending `body(k)` (k counts over all of them) again and again, `pause` seconds apart."""
    stop = threading.Event()
    counter = itertools.count()

    def work() -> None:
        with httpx.Client(trust_env=False, timeout=120) as client:
            while not stop.is_set():
                try:
                    client.post(f"{url}/v1/completions", json=body(next(counter)))
                except httpx.TransportError:
                    return  # the server was stopped at the end of the test
                stop.wait(pause)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(number)]
    for thread in threads:
        thread.start()
    time.sleep(warm_seconds)
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join(60)


def completion(prompt: str, tokens: int, **more: Any) -> dict[str, Any]:
    return {"prompt": prompt, "max_tokens": tokens, "ignore_eos": True, "temperature": 0.7, **more}
