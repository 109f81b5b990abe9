"""`headway serve [MODEL] [flags]`."""

from __future__ import annotations

import logging
import os
import sys

import click

from headway.cli.flag_help import flag_help
from headway.cli.serve_config import ALL_FLAGS, serve_config
from headway.errors import HeadwayError


@click.command(
    "serve",
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []},
    add_help_option=False,
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def serve_command(words: tuple[str, ...]) -> None:
    """Serve a language model over an OpenAI-compatible API."""
    warnings: list[str] = []
    try:
        config = serve_config(words, os.environ, warnings.append)
    except HeadwayError:
        for sentence in warnings:
            click.echo(f"headway: warning: {sentence}", err=True)
        raise
    if config.topic is not None:
        click.echo("Usage: headway serve [MODEL] [FLAGS]\n")
        click.echo(flag_help(ALL_FLAGS, config.topic))
        return
    if config.engine.node_rank > 0:
        from headway.engine.distributed.headless_node import run_headless
        from headway.telemetry.logs import configure_logging

        configure_logging(f"Node{config.engine.node_rank}", level=config.server.log_level, config_file=config.server.log_config_file)
        for sentence in warnings:
            logging.getLogger(__name__).warning("%s", sentence)
        code = run_headless(config.engine)
    else:
        from headway.server.run import serve

        code = serve(config.engine, config.server, warnings)
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # the engine's thread may still be inside a kernel; waiting for it would delay the end
