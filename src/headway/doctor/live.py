"""Looking at what runs: a machine, a server behind a URL, an address."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import httpx

from headway.doctor.collect.assemble import (
    as_context,
    context_of_caller,
    context_of_machine,
    context_of_process,
    joined,
    with_probes,
)
from headway.doctor.collect.endpoint import ask_health, client_for, histograms, others, sample_requests, timed_request
from headway.doctor.collect.metrics import watch
from headway.doctor.collect.network import base_url, parse_address, probe
from headway.doctor.collect.own_server import own_key, own_url
from headway.doctor.collect.processes import ServerProcess, server_at, server_processes
from headway.doctor.collect.transcript import Transcript
from headway.doctor.examine import Examined, examine_live
from headway.errors import DoctorError

Seen = Callable[[Mapping[str, Any]], None]


@dataclass(frozen=True, slots=True)
class Look:
    """How long and how a server is looked at. `requests`: tiny streamed requests to send (0 = none)."""

    samples: int = 4
    interval: float = 2.0
    requests: int = 3
    api_key: str | None = None
    verify: bool = True
    direct: str | None = None
    """The server's own address when the URL is that of a proxy before it."""
    sample: Path | None = None
    """Bodies of requests as users send them, one JSON object a line."""
    said: str = ""
    """What the user says seems wrong."""
    timeout: float = 60.0
    """Seconds that one answer may take."""


_QUICK: Final = Look(samples=2, interval=1.0, requests=1, timeout=30.0)
_WITH_AN_API: Final = ("vllm", "headway", "llama.cpp", "sglang", "tensorrt-llm")


def examine_server(url: str, look: Look, known: Mapping[str, Any] | None = None, seen: Seen = lambda sample: None) -> tuple[dict[str, Any], Examined]:
    """The context that was gathered about the server behind `url`, and the report on it."""
    plain = base_url(url)
    transcript = Transcript()
    sample = sample_requests(look.sample) if look.sample is not None else []
    with client_for(look.api_key, look.verify, look.timeout) as client:
        asked = _asked(client, plain, look, transcript, seen)
    if rows := asked.get("requests", []) + sample:
        asked["requests"] = rows
    context = joined(known or {}, {"said": look.said} if look.said else {}, asked)
    if context["endpoint"]["health"] is None:
        address = parse_address(plain)
        probe(address, transcript)
        context = joined(context_of_caller(address), context)
    context = with_probes(context, transcript)
    return context, examine_live(as_context(context), transcript)


def examine_url(url: str, look: Look, seen: Seen = lambda sample: None) -> Examined:
    """The server behind `url`, with all that is known of its process and machine when it runs here."""
    own = server_at(parse_address(look.direct or url))
    return examine_server(url, look, context_of_process(own) if own is not None else None, seen)[1]


def _asked(client: httpx.Client, url: str, look: Look, transcript: Transcript, seen: Seen) -> dict[str, Any]:
    endpoint = ask_health(client, url, transcript)
    part: dict[str, Any] = {"endpoint": endpoint}
    if endpoint["health"] is None:
        return part
    server = base_url(look.direct) if look.direct else url
    if endpoint["models"] and endpoint["health"]["status"] < 500 and (rows := _probed(client, url, endpoint["models"][0], look, transcript, server)):
        part["requests"] = rows
    try:
        part["metrics"] = watch(client, server, look.samples, look.interval, seen)
    except DoctorError as error:
        transcript.say(str(error))
    return part


def _probed(client: httpx.Client, url: str, model: str, look: Look, transcript: Transcript, server: str) -> list[dict[str, Any]]:
    """The tiny requests, and what other people's requests did meanwhile."""
    rows: list[dict[str, Any]] = []
    before = histograms(client, server)
    for _ in range(look.requests):
        row = timed_request(client, url, model, transcript, server if before else None)
        if row is None:
            break
        rows.append(row)
    beside = others(before, histograms(client, server), rows)
    return [*rows, beside] if beside is not None else rows


def examine_address(text: str) -> tuple[dict[str, Any], Examined]:
    """Is it reachable from here, and what speaks there?"""
    transcript = Transcript()
    address = parse_address(text)
    probe(address, transcript)
    context = with_probes(context_of_caller(address), transcript)
    return context, examine_live(as_context(context), transcript)


@dataclass(frozen=True, slots=True)
class Looked:
    """One server of this machine (None: the machine itself) with its report."""

    server: ServerProcess | None
    context: dict[str, Any]
    examined: Examined


def examine_machine(look: Look = _QUICK) -> list[Looked]:
    """Every server that runs here; the machine alone when none does."""
    looked: list[Looked] = []
    for server in server_processes():
        known = context_of_process(server)
        if (url := own_url(server)) and server.program in _WITH_AN_API:
            own = replace(look, api_key=own_key(server), verify=False)
            context, examined = examine_server(url, own, known)
        else:
            context, examined = known, examine_live(as_context(known), Transcript())
        looked.append(Looked(server, context, examined))
    if not looked:
        machine = context_of_machine()
        looked.append(Looked(None, machine, examine_live(as_context(machine), Transcript())))
    return looked
