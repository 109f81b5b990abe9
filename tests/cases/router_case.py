"""Shared by the cases of the router: small documents for real router processes, scripted model runtimes on a thread, and raw requests."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from tests.e2e.router_process import PUBLIC
from tests.router.deployments.fake_runtime import Body, FakeRuntime


def document(models: Mapping[str, Any], routing: Mapping[str, Any], **rest: Any) -> dict[str, Any]:
    """`models`: the endpoint of each, or all its fields. The first one is the default."""
    found = [{"name": name, **(given if isinstance(given, dict) else {"backend_refs": [{"name": "one", "endpoint": given}]})} for name, given in models.items()]
    listeners = [{"name": "public", "address": "127.0.0.1", "port": PUBLIC}]
    return {"version": "v0.3", "listeners": listeners, "providers": {"defaults": {"model": next(iter(models))}, "models": found}, "routing": routing, **rest}


def decision(name: str, rules: Mapping[str, Any] | None = None, model: str = "m", plugins: Sequence[Mapping[str, Any]] = (), **rest: Any) -> dict[str, Any]:
    found = {"name": name, "modelRefs": [{"model": model}], **rest}
    return {**found, **({"rules": rules} if rules else {}), **({"plugins": list(plugins)} if plugins else {})}


def any_of(*leaves: Mapping[str, Any]) -> dict[str, Any]:
    return {"operator": "OR", "conditions": list(leaves)}


def all_of(*leaves: Mapping[str, Any]) -> dict[str, Any]:
    return {"operator": "AND", "conditions": list(leaves)}


def attached(runtime: FakeRuntime, name: str) -> dict[str, Any]:
    return {"provider": "model_runtime", "endpoint": runtime.endpoint, "served_name": name}


@contextmanager
def runtime(*cards: Body, **scripts: Any) -> Iterator[FakeRuntime]:
    """A scripted model runtime on a thread of its own. `scripts` are by the last word of the path: `decisions`, `embeddings`, `classify`."""
    loop, made = asyncio.new_event_loop(), FakeRuntime(*cards)
    made.script = {f"/v1/{name}": script for name, script in scripts.items()}
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    asyncio.run_coroutine_threadsafe(made.start(), loop).result(10)
    try:
        yield made
    finally:
        asyncio.run_coroutine_threadsafe(made.stop(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def raw_answer(port: int, head: bytes, body: bytes) -> bytes:
    """What a server says to exactly these bytes; `head` has no length and no blank line yet."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as link:
        link.sendall(head + b"content-length: %d\r\nconnection: close\r\n\r\n" % len(body) + body)
        found = b""
        while part := link.recv(65536):
            found += part
    return found
