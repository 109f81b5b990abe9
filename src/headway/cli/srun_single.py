"""Options of the commands that load one model and serve nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click


def single_model_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """MODEL, and how it is found and run."""
    for decorate in (
        click.option("--accept-licence", multiple=True, help="Identifier of a restricted licence that you accept; repeatable."),
        click.option("--threads", default=None, type=click.IntRange(1), help="CPU threads; absent = all that the process may use."),
        click.option("--family", default=None, help="Family plug-in; absent = detected."),
        click.option("--revision", default=None, help="Commit of a hub repository."),
        click.argument("model"),
    ):
        command = decorate(command)
    return command
