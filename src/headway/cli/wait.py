"""`headway wait [URL]`: block until a server is ready."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import click
from rich.console import Console

from headway.cli.server_client import ServerClient, server_url
from headway.cli.trust import Trust, trust_options
from headway.errors import HeadwayError

_POLL_SECONDS = 0.2


@dataclass(frozen=True, slots=True)
class Readiness:
    """`state`: unreachable, untrusted, loading, ok, stalled, restarting, stopping, dead, stopped, or "status N" for an answer without
    JSON."""

    state: str
    stage: str = ""
    progress: float = 0.0
    reason: str = ""
    ranks: tuple[dict[str, Any], ...] = field(default=(), compare=False)  # as /health has them

    @property
    def is_final(self) -> bool:
        return self.state in ("ok", "untrusted", "dead", "stopped", "stopping")


def readiness(client: ServerClient) -> Readiness:
    """What /health says. An empty 200, as stock vLLM gives, is ok."""
    try:
        response = client.get("/health")
    except HeadwayError as error:
        if error.reason == "certificate_refused":
            return Readiness("untrusted", reason=error.message)
        return Readiness("unreachable")
    try:
        body = response.json()
        state = str(body["status"])
        found = Readiness(
            state,
            str(body.get("stage", "")),
            float(body.get("progress", 0.0)),
            str(body.get("message" if state == "restarting" else "reason", "")),
            tuple(dict(each) for each in body.get("ranks", ())),
        )
    except (ValueError, TypeError, KeyError, AttributeError):
        found = Readiness("")
    if response.status_code == 200:
        return Readiness("ok", ranks=found.ranks)
    return found if found.state else Readiness(f"status {response.status_code}")


def wait_until_ready(
    client: ServerClient,
    seconds: float,
    on_change: Callable[[Readiness], None],
    sleep: Callable[[float], None] = time.sleep,
) -> Readiness:
    """Ask until the state is final or the time is over; `on_change` hears each new state, stage or progress."""
    deadline = time.monotonic() + seconds
    last: Readiness | None = None
    while True:
        found = readiness(client)
        if found != last:
            on_change(found)
            last = found
        if found.is_final or time.monotonic() >= deadline:
            return found
        sleep(_POLL_SECONDS)


@click.command("wait")
@click.argument("url", required=False)
@click.option("--timeout", default=600.0, show_default=True, help="Seconds to wait.")
@trust_options
@click.option("--json", "as_json", is_flag=True, help="Print the final state as one JSON object.")
def wait_command(
    url: str | None, timeout: float, cacert: str | None, cert: str | None, key: str | None, as_json: bool
) -> None:
    """Wait until the server at URL is ready; show how far it is. Exits with 1 if it does not become ready."""
    client = ServerClient(server_url(url), trust=Trust(cacert, cert, key))
    console = Console(stderr=True)
    with console.status(f"waiting for {client.url}") as status:
        stage = ""

        def show(found: Readiness) -> None:
            nonlocal stage
            text = found.stage or found.state
            status.update(f"{client.url}: {text} {found.progress:.0%}" if found.stage else f"{client.url}: {text}")
            if text != stage and not console.is_terminal:
                console.print(f"{client.url}: {text}", highlight=False, soft_wrap=True)
            stage = text

        final = wait_until_ready(client, timeout, show)
    if as_json:
        click.echo(json.dumps({"url": client.url, **asdict(final)}))
    elif final.state == "ok":
        console.print(f"{client.url} is ready", highlight=False, soft_wrap=True)
    if final.state != "ok":
        why = final.reason or (
            f"still {final.stage or final.state} after {timeout:g} s" if not final.is_final else "it ends"
        )
        raise HeadwayError(f"{client.url} is not ready: {why}", reason="not_ready")
