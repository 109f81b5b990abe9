"""`headway up`: from nothing to an answered request."""

from __future__ import annotations

from pathlib import Path

import click
from click.core import ParameterSource
from rich.console import Console

from headway.compose.headway_file import find_headway_file, read_headway_file
from headway.compose.stack import DEFAULT_MODEL, default_parts, stack_of
from headway.compose.up import up
from headway.errors import ConfigError

_OF_THE_DEFAULT_STACK = ("model", "host", "port", "runtime_port", "runtime", "router", "accept_licence")


@click.command("up")
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--model", default=DEFAULT_MODEL, show_default=True, help="Model to serve: a short name, folder, .gguf file or hub id.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address that engines and runtime listen on.")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(1, 65535), help="Port of the first engine; the second is one above.")
@click.option("--runtime-port", type=click.IntRange(1, 65535), help="Port of the model runtime; 100 above --port when absent.")
@click.option("--runtime/--no-runtime", default=True, help="Start the model runtime and the router beside the engine (the default), or not.")
@click.option("--router/--no-router", default=True, help="Start the router and a second engine (the default), or not.")
@click.option("--accept-licence", multiple=True, help="Word of a licence that has to be accepted first, such as gemma.")
@click.pass_context
def up_command(
    context: click.Context, /, file: Path | None, model: str, host: str, port: int, runtime_port: int | None, runtime: bool, router: bool,
    accept_licence: tuple[str, ...],
) -> None:  # fmt: skip
    """Run what FILE (or headway.yaml here) describes, or the default stack: two engines, a model runtime and a router before them. Ctrl-C stops
    everything."""
    given = [name for name in _OF_THE_DEFAULT_STACK if context.get_parameter_source(name) is not ParameterSource.DEFAULT]
    found = None if given and file is None else find_headway_file(file)
    if found is None:
        parts = default_parts(model, host, port, accept_licence, runtime_port, runtime, router)
        stack = stack_of(parts)
    elif given:
        raise ConfigError(f"--{given[0].replace('_', '-')} is of the default stack, and {found} describes another", fix=f"Change {found} instead.")
    else:
        parts = read_headway_file(found)
        stack = stack_of(parts, found.parent, port_flag=str(found))
    up(stack, Console(), parts.router.demonstration if parts.router else "")
