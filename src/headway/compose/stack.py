"""What `headway up` runs, as data. A part that is added later is one more declaration here."""

from __future__ import annotations

import json
import os
import shlex
import sys
from dataclasses import dataclass
from typing import Any

from headway.host.cpu_budget import cpu_budget
from headway.runtime.default_models import DEFAULT_MODELS

DEFAULT_MODEL = "smollm2-135m-instruct"
RUNTIME_OFFSET = 100
"""The runtime's port lies so far above the engine's, unless it is named: 8100 for 8000."""
_CHAT = "Name three rivers of Europe."
_STATE = "My parcel never arrived and nobody answers my mails."
_QUESTION = {"type": "choice", "instructions": "What does the customer want?", "criteria": {"a refund": None, "to praise": None, "to order": None}}


@dataclass(frozen=True, slots=True)
class Example:
    """A request that works when pasted. `key_variable` is where the process reads its key from."""

    path: str
    body: dict[str, Any]
    key_variable: str


@dataclass(frozen=True, slots=True)
class ProcessDeclaration:
    """One process: how it is started, where it answers, what it serves.

    `models` are references that are fetched before it starts. `health_url` answers 200 when it is ready and 503 with what
    it is doing while it loads. `base_url` is what clients use, `port_flag` the flag of `headway up` that moves it.
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
    examples: tuple[Example, ...] = ()
    port_flag: str = "--port"


def default_stack(
    model: str = DEFAULT_MODEL,
    host: str = "127.0.0.1",
    port: int = 8000,
    licences: tuple[str, ...] = (),
    runtime_port: int | None = None,
    with_runtime: bool = True,
) -> tuple[ProcessDeclaration, ...]:
    """One engine with one chat model, and one model runtime with small models beside it."""
    engine = engine_declaration(model, host, port, licences)
    if not with_runtime:
        return (engine,)
    return engine, runtime_declaration(host, runtime_port or beside(port))


def beside(port: int) -> int:
    """The runtime's port for that of the engine."""
    return port + RUNTIME_OFFSET if port + RUNTIME_OFFSET <= 65535 else port - RUNTIME_OFFSET


def engine_declaration(model: str, host: str, port: int, licences: tuple[str, ...]) -> ProcessDeclaration:
    flags = ("--host", host, "--port", str(port), "--exit-on-engine-death", "--disable-access-log-for-endpoints", "/health")
    accepted = tuple(word for licence in licences for word in ("--accept-licence", licence))
    body = {"model": model, "messages": [{"role": "user", "content": _CHAT}], "max_tokens": 64, "temperature": 0}
    return ProcessDeclaration(
        name="engine",
        command=(sys.executable, "-m", "headway.cli.main", "serve", model, *flags, *accepted),
        host=host,
        port=port,
        health_url=f"{_origin(host, port)}/health",
        base_url=f"{_origin(host, port)}/v1",
        models=(model,),
        licences=licences,
        serves=f"{model} (chat, completions)",
        examples=(Example("/chat/completions", body, "VLLM_API_KEY"),),
    )


def runtime_declaration(host: str, port: int) -> ProcessDeclaration:
    """It gets half of the cores: two teams of threads that want all of them slow both down."""
    threads = max(1, cpu_budget().threads // 2)
    flags = ("--host", host, "--port", str(port), "--threads", str(threads))
    key = "VLLM_SRUN_API_KEY"
    return ProcessDeclaration(
        name="runtime",
        command=(sys.executable, "-m", "headway.cli.srun", "serve", *DEFAULT_MODELS, *flags),
        host=host,
        port=port,
        health_url=f"{_origin(host, port)}/health",
        base_url=f"{_origin(host, port)}/v1",
        models=DEFAULT_MODELS,
        serves=f"{', '.join(DEFAULT_MODELS)} (embeddings, decisions)",
        port_flag="--runtime-port",
        examples=(
            Example("/systemone", {"state": _STATE, "questions": {"wish": _QUESTION}}, key),
            Example("/embeddings", {"model": DEFAULT_MODELS[0], "input": _STATE}, key),
        ),
    )


def example_requests(declaration: ProcessDeclaration) -> list[str]:
    """curl commands that work when pasted; with a key set, they take it from the environment."""
    return [_curl(declaration.base_url, example) for example in declaration.examples]


def _curl(base_url: str, example: Example) -> str:
    key = f' -H "Authorization: Bearer ${example.key_variable}"' if os.environ.get(example.key_variable) else ""
    data = shlex.quote(json.dumps(example.body))
    return f"curl -s {base_url}{example.path} -H 'Content-Type: application/json'{key} -d {data}"


def _origin(host: str, port: int) -> str:
    """Where this machine reaches a server that listens there."""
    reached = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{reached}:{port}"
