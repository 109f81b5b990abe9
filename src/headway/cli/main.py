"""`headway`: the commands. Each is imported when it is used, so that help and version come at once."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Sequence
from importlib import import_module

import click

from headway import __version__
from headway.errors import HeadwayError, NotBuiltError

# name -> (module:attribute, help). A command that a later version brings stands in _NOT_BUILT.
_COMMANDS = {
    "serve": ("headway.cli.serve:serve_command", "Serve a language model over an OpenAI-compatible API."),
    "up": ("headway.cli.up:up_command", "Fetch the default model, serve it, show how to ask it."),
    "wait": ("headway.cli.wait:wait_command", "Wait until a server is ready."),
    "status": ("headway.cli.status:status_command", "Show the servers that run on this machine."),
    "stop": ("headway.cli.stop:stop_command", "Stop a server that runs on this machine."),
    "chat": ("headway.cli.chat:chat_command", "Talk to a model that is served."),
    "complete": ("headway.cli.complete:complete_command", "Let a model that is served continue a text."),
    "inspect": ("headway.cli.inspect:inspect_command", "Show what a model is and whether it fits, from headers only."),
    "bench": ("headway.cli.bench:bench_group", "Measure throughput and latency."),
    "shim": ("headway.cli.shim:shim_group", "Let `vllm` mean Headway in this environment."),
}
_NOT_BUILT = ("plan", "tune", "eval", "quantize", "doctor", "env", "run-batch", "collect-env", "launch")


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _NOT_BUILT:
            raise NotBuiltError(f"headway {cmd_name} is not built yet")
        if cmd_name not in _COMMANDS:
            return None
        module, attribute = _COMMANDS[cmd_name][0].split(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """click suggests commands that are imported already, and here none is."""
        near = difflib.get_close_matches(args[0], _COMMANDS, 1)
        if near and args[0] not in (*_COMMANDS, *_NOT_BUILT):
            ctx.fail(f"No such command {args[0]!r}. Did you mean {near[0]!r}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])


@click.command(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, "-v", "--version", message="%(version)s")
def headway() -> None:
    """Serve language models and the small models around them."""


def main() -> None:
    run("headway", sys.argv[1:])


def run(program: str, words: Sequence[str]) -> None:
    """Errors are one line with the fix. Exit codes: 0 done, 1 failed, 2 wrong use or not built, 130 interrupted."""
    try:
        headway(list(words), prog_name=program, standalone_mode=False)
    except click.exceptions.Abort:
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except HeadwayError as error:
        click.echo(f"headway: {error.message}", err=True)
        sys.exit(exit_code(error))


def exit_code(error: HeadwayError) -> int:
    """2 when the command line has to change, 1 when something else has."""
    return 2 if error.reason in _WRONG_USE else 1


_WRONG_USE = frozenset(
    {"invalid_config", "not_built", "unknown_flag", "flag_refused", "unknown_variable", "unknown_plugin", "models_file_invalid"}
)


if __name__ == "__main__":
    main()
