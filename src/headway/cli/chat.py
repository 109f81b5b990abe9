"""`headway chat`: talk to a model that is served."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
from rich.console import Console

from headway.cli.conversation import Talk, lines_of_user, open_talk, print_json, print_while_it_comes, talk_options

Message = dict[str, str]


@click.command("chat")
@talk_options
@click.option("--system-prompt", help="What the model is told before the talk.")
def chat_command(quick: str | None, as_json: bool, system_prompt: str | None, **given: Any) -> None:
    """Talk to a model that is served. Ctrl-C stops an answer, Ctrl-D ends the talk."""
    talk = open_talk(**given)
    messages: list[Message] = [{"role": "system", "content": system_prompt}] if system_prompt else []
    console = Console()
    if quick is not None:
        usage: dict[str, Any] = {}
        pieces = answer(talk, [*messages, {"role": "user", "content": quick}], usage)
        if as_json:
            print_json("".join(pieces), usage or None, talk.model)
        else:
            print_while_it_comes(pieces, console)
        return
    console.print(f"{talk.model} at {talk.client.url}. Ctrl-D ends.", style="dim", highlight=False)
    for line in lines_of_user(console, "[bold]> [/bold]"):
        messages.append({"role": "user", "content": line})
        text, _ = print_while_it_comes(answer(talk, messages, {}), console)
        messages.append({"role": "assistant", "content": text})


def answer(talk: Talk, messages: list[Message], usage: dict[str, Any]) -> Iterator[str]:
    """The pieces of an answer; `usage` is filled at the end."""
    body = {"model": talk.model, "messages": messages, "stream_options": {"include_usage": True}, **talk.sampling}
    for chunk in talk.client.events("/v1/chat/completions", body):
        usage.update(chunk.get("usage") or {})
        for choice in chunk.get("choices", ()):
            yield choice.get("delta", {}).get("content") or ""
