"""`headway doctor router`: walk through a router that runs, then judge what was seen."""

from __future__ import annotations

from dataclasses import dataclass

from headway.doctor.collect.assemble import as_context, context_of_caller, context_of_process, joined, with_probes
from headway.doctor.collect.endpoint import client_for
from headway.doctor.collect.network import is_here, parse_address, probe
from headway.doctor.collect.processes import server_processes
from headway.doctor.collect.router import RouterPlace, Step, walk
from headway.doctor.collect.transcript import Transcript
from headway.doctor.examine import Examined, examine_live


@dataclass(frozen=True, slots=True)
class RouterWalk:
    steps: tuple[Step, ...]
    examined: Examined


def examine_router(place: RouterPlace, prompt: str, token: str | None, verify: bool = True) -> RouterWalk:
    """`token`: of the management address, when it wants one. `prompt` is previewed, not sent to a model."""
    transcript = Transcript()
    with client_for(token, verify, timeout=60.0) as client:
        steps, part = walk(client, place, prompt, transcript)
    if not any(step.ok for step in steps):
        probe(parse_address(place.listener), transcript)
    context = with_probes(joined(_around(place), part), transcript)
    return RouterWalk(tuple(steps), examine_live(as_context(context), transcript))


def _around(place: RouterPlace) -> dict[str, object]:
    """The router's own process when it runs here."""
    port = parse_address(place.management).port
    here = is_here(parse_address(place.management).host)
    own = next((server for server in server_processes() if here and server.program == "vllm-sr" and port in server.ports), None)
    return context_of_process(own) if own is not None else context_of_caller(parse_address(place.management))
