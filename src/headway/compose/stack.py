"""What `headway up` runs, as data. A part that is added later is one more declaration here."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from headway.artifacts.cache_folders import headway_cache
from headway.compose.headway_file import EnginePart, HeadwayFile, RouterPart, RuntimePart, engine_variable, flag_words
from headway.host.cpu_budget import cpu_budget
from headway.router.config.load import load_document
from headway.router.generation.names import AUTO_NAMES
from headway.router.process.settings import ServeSettings, addresses

DEFAULT_MODEL = "smollm2-135m-instruct"
ROUTER = "router"
RUNTIME_OFFSET = 100
"""The runtime's port lies so far above the engine's, unless it is named: 8100 for 8000."""
RUNTIME_MODELS = ("all-minilm-l6-v2", "sparrow-nano")
"""Vectors for the router, and choices; decisions by label logits would load the engines' weights a third time."""
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
    variables: Mapping[str, str] = field(default_factory=dict)  # of its environment, beside ours
    other_places: tuple[tuple[str, int], ...] = ()  # host and port of what it listens on beside its own address


def default_parts(
    model: str = DEFAULT_MODEL,
    host: str = "127.0.0.1",
    port: int = 8000,
    licences: tuple[str, ...] = (),
    runtime_port: int | None = None,
    with_runtime: bool = True,
    with_router: bool = True,
) -> HeadwayFile:
    """Two engines with the same weights in two precisions, one model runtime with small models, and the router before them. Without a runtime or a
    router there is one engine: nothing chooses between two."""
    engines = [EnginePart(name="small", model=model, host=host, port=port, accept_licences=list(licences), flags={"dtype": "bfloat16"})]
    routed = with_router and with_runtime
    if routed:
        large = EnginePart(name="large", model=model, host=host, port=_near(port, 1), accept_licences=list(licences), flags={"dtype": "float32"})
        engines.append(large)
    runtimes = [RuntimePart(name="runtime", models=list(RUNTIME_MODELS), host=host, port=runtime_port or _near(port, RUNTIME_OFFSET))]
    return HeadwayFile(engines=engines, runtimes=runtimes if with_runtime else [], router=RouterPart() if routed else None)


def stack_of(parts: HeadwayFile, folder: Path = Path(), port_flag: str = "--port") -> tuple[ProcessDeclaration, ...]:
    """The processes of a headway.yaml in `folder`. `port_flag` tells how to move a port that is taken."""
    engines = [engine_declaration(part, port_flag) for part in parts.engines]
    runtimes = [runtime_declaration(part) for part in parts.runtimes]
    router = [router_declaration(parts.router, parts, folder)] if parts.router else []
    return (*engines, *runtimes, *router)


def _near(port: int, offset: int) -> int:
    """So far above, or below where there is no port above."""
    return port + offset if port + offset <= 65535 else port - offset


def engine_declaration(part: EnginePart, port_flag: str = "--port") -> ProcessDeclaration:
    name = part.served_name or part.name
    flags = ("--host", part.host, "--port", str(part.port), "--exit-on-engine-death", "--disable-access-log-for-endpoints", "/health")
    names = ("--served-model-name", *dict.fromkeys((name, part.model)))
    accepted = tuple(word for licence in part.accept_licences for word in ("--accept-licence", licence))
    body = {"model": name, "messages": [{"role": "user", "content": _CHAT}], "max_tokens": 64, "temperature": 0}
    return ProcessDeclaration(
        name=part.name,
        command=(sys.executable, "-m", "headway.cli.main", "serve", part.model, *flags, *names, *flag_words(part.flags), *accepted),
        host=part.host,
        port=part.port,
        health_url=f"{_origin(part.host, part.port)}/health",
        base_url=f"{_origin(part.host, part.port)}/v1",
        models=(part.model,),
        licences=tuple(part.accept_licences),
        serves=f"{name}: {part.model}{_precision(part)} (chat, completions)",
        examples=(Example("/chat/completions", body, "VLLM_API_KEY"),),
        port_flag=port_flag,
    )


def _precision(part: EnginePart) -> str:
    dtype = part.flags.get("dtype")
    return f" in {dtype}" if dtype else ""


def runtime_declaration(part: RuntimePart) -> ProcessDeclaration:
    """Unless it says otherwise it gets half of the cores: two teams of threads that want all of them slow both down."""
    threads = {} if "threads" in part.flags else {"threads": max(1, cpu_budget().threads // 2)}
    flags = ("--host", part.host, "--port", str(part.port), *flag_words({**threads, **part.flags}))
    key = "VLLM_SRUN_API_KEY"
    examples = {
        "all-minilm-l6-v2": Example("/embeddings", {"model": "all-minilm-l6-v2", "input": _STATE}, key),
        "sparrow-nano": Example("/systemone", {"model": "sparrow-nano", "state": _STATE, "questions": {"wish": _QUESTION}}, key),
    }
    return ProcessDeclaration(
        name=part.name,
        command=(sys.executable, "-m", "headway.cli.srun", "serve", *part.models, *flags),
        host=part.host,
        port=part.port,
        health_url=f"{_origin(part.host, part.port)}/health",
        base_url=f"{_origin(part.host, part.port)}/v1",
        models=tuple(part.models),
        serves=f"{', '.join(part.models)} (embeddings, decisions)",
        port_flag="--runtime-port",
        examples=tuple(example for model, example in examples.items() if model in part.models),
    )


def router_declaration(part: RouterPart, parts: HeadwayFile, folder: Path) -> ProcessDeclaration:
    """Its configuration finds the engines in `HEADWAY_ENGINE_<NAME>` (host:port) and the first runtime in `HEADWAY_RUNTIME` (an address)."""
    config = folder / part.config if part.config else default_router_file()
    variables = {engine_variable(each.name): f"{_reached(each.host)}:{each.port}" for each in parts.engines}
    if parts.runtimes:
        variables["HEADWAY_RUNTIME"] = _origin(parts.runtimes[0].host, parts.runtimes[0].port)
    settings = ServeSettings(config, config.parent, port_offset=int(os.environ.get("VLLM_SR_PORT_OFFSET") or 0))
    places = {place.name: place for place in addresses(load_document(config, {**os.environ, **variables}).document, settings)}
    public = next(iter(places.values()))
    body = {"model": AUTO_NAMES[0], "messages": [{"role": "user", "content": part.demonstration or _CHAT}], "max_tokens": 64}
    scheme = "https" if public.listener and public.listener.tls else "http"
    return ProcessDeclaration(
        name=ROUTER,
        command=(sys.executable, "-m", "headway.cli.sr", "serve", "--config", str(config), *flag_words(part.flags)),
        host=public.host,
        port=public.port,
        health_url=f"{_origin(places['management'].host, places['management'].port)}/ready",
        base_url=f"{_origin(public.host, public.port)}/v1".replace("http", scheme, 1),
        serves=f"{AUTO_NAMES[0]}: the router ({config.name}) chooses among the models above",
        port_flag="VLLM_SR_PORT_OFFSET",
        examples=(Example("/chat/completions", body, "OPENAI_API_KEY"),),
        variables=variables,
        other_places=tuple((place.host, place.port) for place in places.values() if place is not public),
    )


def default_router_file() -> Path:
    """The configuration of the default stack, where its state may lie beside it."""
    folder = headway_cache() / "up"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    kept = folder / "router.yaml"
    kept.write_text(files("headway.compose").joinpath("default_router.yaml").read_text(encoding="utf-8"), encoding="utf-8")
    return kept


def example_requests(declaration: ProcessDeclaration) -> list[str]:
    """curl commands that work when pasted; with a key set, they take it from the environment."""
    return [_curl(declaration.base_url, example) for example in declaration.examples]


def _curl(base_url: str, example: Example) -> str:
    key = f' -H "Authorization: Bearer ${example.key_variable}"' if os.environ.get(example.key_variable) else ""
    data = shlex.quote(json.dumps(example.body))
    return f"curl -s {base_url}{example.path} -H 'Content-Type: application/json'{key} -d {data}"


def _origin(host: str, port: int) -> str:
    """Where this machine reaches a server that listens there."""
    return f"http://{_reached(host)}:{port}"


def _reached(host: str) -> str:
    return {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
