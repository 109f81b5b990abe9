"""`vllm-srun`: the commands of the model runtime. Each is imported when it is used."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from headway import __version__
from headway.cli.main import exit_code
from headway.errors import HeadwayError
from headway.host.worker_environment import prepare_worker

# name -> (module:attribute, help)
_COMMANDS = {
    "serve": ("headway.cli.srun_serve:serve_command", "Serve task and decision models over HTTP."),
    "models": ("headway.cli.srun_about:models_command", "List the models that are known by name."),
    "plugins": ("headway.cli.srun_about:plugins_command", "List the plug-ins that are installed, as JSON."),
    "devices": ("headway.cli.srun_about:devices_command", "List the devices of this machine, as JSON."),
    "fixture": ("headway.cli.srun_fixture:fixture_command", "Write a tiny package with random weights."),
    "golden": ("headway.cli.srun_golden:golden_group", "Record the answers of a model, or compare with the record."),
    "evaluate": ("headway.cli.srun_evaluate:evaluate_command", "Ask a decision model the packaged labelled questions."),
    "calibrate": ("headway.cli.srun_calibrate:calibrate_command", "Calibrate a model on labelled examples."),
}


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _COMMANDS:
            return None
        module, attribute = _COMMANDS[cmd_name][0].split(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        near = difflib.get_close_matches(args[0], _COMMANDS, 1)
        if near and args[0] not in _COMMANDS:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {near[0]!r}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])


@click.command(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-v", "--version", message="%(version)s")
def vllm_srun() -> None:
    """Serve task and decision models: classification, spans, embeddings, reranking, questions about a state."""


def main() -> None:
    run(sys.argv[1:])


def run(words: Sequence[str]) -> None:
    """Errors are one line with the fix. Exit codes: 0 done, 1 failed, 2 wrong use, 3 device fault, 130 interrupted."""
    prepare_worker(os.environ)  # before a command imports torch or numpy
    try:
        vllm_srun(list(words), prog_name="vllm-srun", standalone_mode=False)
    except click.exceptions.Abort:
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except HeadwayError as error:
        click.echo(f"vllm-srun: {error.message}", err=True)
        sys.exit(exit_code(error))


if __name__ == "__main__":
    main()
