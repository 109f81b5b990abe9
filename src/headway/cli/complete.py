"""`headway complete`: let a model that is served continue a text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
from rich.console import Console

from headway.cli.conversation import Talk, lines_of_user, open_talk, print_json, print_while_it_comes, talk_options

_USUAL_TOKENS = 128


@click.command("complete")
@talk_options
def complete_command(quick: str | None, as_json: bool, **given: Any) -> None:
    """Let a model that is served continue a text. Ctrl-C stops an answer, Ctrl-D ends."""
    given["max_tokens"] = given["max_tokens"] or _USUAL_TOKENS
    talk = open_talk(**given)
    console = Console()
    if quick is not None:
        usage: dict[str, Any] = {}
        pieces = continuation(talk, quick, usage)
        if as_json:
            print_json("".join(pieces), usage or None, talk.model)
        else:
            print_while_it_comes(pieces, console)
        return
    console.print(
        f"{talk.model} at {talk.client.url} continues what you type. Ctrl-D ends.", style="dim", highlight=False
    )
    for line in lines_of_user(console, "[bold]> [/bold]"):
        print_while_it_comes(continuation(talk, line, {}), console)


def continuation(talk: Talk, prompt: str, usage: dict[str, Any]) -> Iterator[str]:
    """The pieces of the text that follows; `usage` is filled at the end."""
    body = {"model": talk.model, "prompt": prompt, "stream_options": {"include_usage": True}, **talk.sampling}
    for chunk in talk.client.events("/v1/completions", body):
        usage.update(chunk.get("usage") or {})
        for choice in chunk.get("choices", ()):
            yield choice.get("text") or ""
