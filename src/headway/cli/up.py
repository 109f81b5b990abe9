"""`headway up`: from nothing to an answered request."""

from __future__ import annotations

import click
from rich.console import Console

from headway.compose.stack import DEFAULT_MODEL, default_stack
from headway.compose.up import up


@click.command("up")
@click.option("--model", default=DEFAULT_MODEL, show_default=True, help="Model to serve: a short name, folder, .gguf file or hub id.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(1, 65535), help="Port to listen on.")
@click.option("--runtime-port", type=click.IntRange(1, 65535), help="Port of the model runtime; 100 above --port when absent.")
@click.option("--runtime/--no-runtime", default=True, help="Start the model runtime beside the engine (the default), or not.")
@click.option("--accept-licence", multiple=True, help="Word of a licence that has to be accepted first, such as gemma.")
def up_command(model: str, host: str, port: int, runtime_port: int | None, runtime: bool, accept_licence: tuple[str, ...]) -> None:
    """Fetch the default models, serve them, show how to ask them. Ctrl-C stops everything."""
    up(default_stack(model, host, port, accept_licence, runtime_port, runtime), Console())
