"""What `headway up` runs, as data. A part that is added later is one more declaration here."""

from __future__ import annotations

import json
import os
import shlex
import sys
from dataclasses import dataclass

DEFAULT_MODEL = "smollm2-135m-instruct"
_EXAMPLE = "Name three rivers of Europe."


@dataclass(frozen=True, slots=True)
class ProcessDeclaration:
    """One process: how it is started, where it answers, what it serves.

    `models` are references that are fetched before it starts. `health_url` answers 200 when it is ready and 503 with
    `stage` and `progress` while it loads. `base_url` is what clients use.
    """

    name: str
    command: tuple[str, ...]
    host: str
    port: int
    health_url: str
    base_url: str
    models: tuple[str, ...] = ()
    licences: tuple[str, ...] = ()  # words of licences that the user has accepted
    serves: str = ""


def default_stack(
    model: str = DEFAULT_MODEL, host: str = "127.0.0.1", port: int = 8000, licences: tuple[str, ...] = ()
) -> tuple[ProcessDeclaration, ...]:
    """The processes in the order in which they start: now one engine with one chat model."""
    reached = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    origin = f"http://{reached}:{port}"
    flags = ("--host", host, "--port", str(port), "--exit-on-engine-death", "--disable-access-log-for-endpoints", "/health")
    accepted = tuple(word for licence in licences for word in ("--accept-licence", licence))
    engine = ProcessDeclaration(
        name="engine",
        command=(sys.executable, "-m", "headway.cli.main", "serve", model, *flags, *accepted),
        host=host,
        port=port,
        health_url=f"{origin}/health",
        base_url=f"{origin}/v1",
        models=(model,),
        licences=licences,
        serves=f"{model} (chat, completions)",
    )
    return (engine,)


def example_request(declaration: ProcessDeclaration) -> str:
    """A curl command for the first model that works when pasted; with a key set, it takes it from the environment."""
    body = {"model": declaration.models[0], "messages": [{"role": "user", "content": _EXAMPLE}], "max_tokens": 64, "temperature": 0}
    key = ' -H "Authorization: Bearer $VLLM_API_KEY"' if os.environ.get("VLLM_API_KEY") else ""
    data = shlex.quote(json.dumps(body))
    return f"curl -s {declaration.base_url}/chat/completions -H 'Content-Type: application/json'{key} -d {data}"
