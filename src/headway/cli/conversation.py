"""What `headway chat` and `headway complete` share: options, the loop of a talk, printing an answer while it comes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import click
from rich.console import Console

from headway.cli.server_client import ServerClient, server_url
from headway.cli.trust import Trust, trust_options

C = TypeVar("C", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Talk:
    """A server, a model on it, and how answers are to be made."""

    client: ServerClient
    model: str
    sampling: dict[str, Any]


def talk_options(command: C) -> C:
    """Options of both commands, in the order shown."""
    for option in reversed(
        (
            click.option("--url", help="Address of the server; else the one that runs here."),
            click.option("--model", "--model-name", "model", help="Model to ask; else the first that is served."),
            click.option("--api-key", envvar="VLLM_API_KEY", help="Key of the server (VLLM_API_KEY)."),
            click.option("--max-tokens", type=click.IntRange(1), help="Longest answer in tokens."),
            click.option("--temperature", type=click.FloatRange(0, 2), help="0 = always the most probable token."),
            click.option("--seed", type=int, help="Makes a sampled answer repeat itself."),
            click.option("-q", "--quick", "quick", metavar="TEXT", help="Ask once, print the answer, end."),
            click.option("--json", "as_json", is_flag=True, help="With -q: print the answer as one JSON object."),
        )
    ):
        command = option(command)
    return trust_options(command)


def open_talk(
    url: str | None, model: str | None, api_key: str | None, cacert: str | None, cert: str | None, key: str | None, **sampling: Any
) -> Talk:
    """Raises HeadwayError if no server answers."""
    client = ServerClient(server_url(url), api_key, timeout=None, trust=Trust(cacert, cert, key))
    given = {name: value for name, value in sampling.items() if value is not None}
    return Talk(client, model or client.model(), given)


def print_while_it_comes(pieces: Iterable[str], console: Console) -> tuple[str, bool]:
    """The whole text, and whether it was allowed to end. Ctrl-C stops the answer, which also ends it on the server."""
    text: list[str] = []
    try:
        for piece in pieces:
            text.append(piece)
            console.out(piece, end="", highlight=False)
    except KeyboardInterrupt:
        console.out()
        return "".join(text), False
    console.out()
    return "".join(text), True


def lines_of_user(console: Console, prompt: str) -> Iterator[str]:
    """What the user types, until end of file or Ctrl-C."""
    while True:
        try:
            line = console.input(prompt)
        except (EOFError, KeyboardInterrupt):
            console.out()
            return
        if line.strip():
            yield line


def print_json(text: str, usage: dict[str, Any] | None, model: str) -> None:
    click.echo(json.dumps({"model": model, "text": text, "usage": usage}, ensure_ascii=False))
