"""`headway run-batch -i IN -o OUT [MODEL] [flags of serve]`: answers the requests of a file."""

from __future__ import annotations

import os

import click

from headway.cli.serve_config import serve_config
from headway.cli.stage_bar import stage_bar
from headway.telemetry.logs import configure_logging


@click.command(
    "run-batch",
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    epilog="All other words are those of `headway serve`: the model and the engine's flags.",
)
@click.option("-i", "--input-file", "source", required=True, help="File with one request on each line, as OpenAI's batches have them.")
@click.option("-o", "--output-file", "target", required=True, help="File for the answers, one on each line, in the same order.")
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def run_batch_command(source: str, target: str, words: tuple[str, ...]) -> None:
    """Answer the requests of a file. A request that cannot be answered is told on its line and hurts no other."""
    warnings: list[str] = []
    config = serve_config(words, os.environ, warnings.append)
    for sentence in warnings:
        click.echo(f"headway: warning: {sentence}", err=True)
    configure_logging("Batch", level=config.server.log_level or "WARNING", config_file=config.server.log_config_file)
    from headway.server.batch.process import answer_file

    with stage_bar() as tell:
        count = answer_file(config.engine, config.server, source, target, tell)
    click.echo(f"{count.answered} answered, {count.refused} refused: {target}")
