"""`vllm-srun serve [MODEL ...] [flags]`."""

from __future__ import annotations

import logging
import os
import sys

import click

from headway.cli.flag_help import flag_help
from headway.cli.srun_config import srun_config
from headway.runtime.flags import SRUN_FLAGS


@click.command(
    "serve",
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True, "help_option_names": []},
    add_help_option=False,
)
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def serve_command(words: tuple[str, ...]) -> None:
    """Serve task and decision models over HTTP."""
    config = srun_config(words, os.environ, lambda sentence: click.echo(f"vllm-srun: warning: {sentence}", err=True))
    if config.topic is not None:
        click.echo("Usage: vllm-srun serve [MODEL ...] [FLAGS]\n")
        click.echo(flag_help(SRUN_FLAGS, config.topic or "all"))
        return
    os.environ.update(config.variables)  # read by the caches and by torch, neither of which is imported yet
    from headway.runtime.worker import run_worker

    code = run_worker(config.entries, config.settings)
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # a thread may still be inside a kernel; waiting for it would delay the end
