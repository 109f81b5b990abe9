"""A group of commands that are imported when they are used, and how a program ends."""

from __future__ import annotations

import difflib
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import click

from headway.errors import DoctorError, HeadwayError, NotBuiltError

# Reasons for which the command line has to change.
_WRONG_USE = frozenset(
    {"invalid_config", "not_built", "unknown_flag", "flag_refused", "unknown_variable", "unknown_plugin", "models_file_invalid"}
)


class LazyGroup(click.Group):
    """`table`: name -> (module:attribute, help). `not_built`: commands that a later version brings, `instead`: what does their work until then. `old_names`: name -> module:attribute, of
    commands that people still type; they are not listed."""

    def __init__(
        self, *args: Any, table: Mapping[str, tuple[str, str]], not_built: Sequence[str] = (), instead: Mapping[str, str] | None = None,
        old_names: Mapping[str, str] | None = None, **more: Any,
    ):  # fmt: skip
        super().__init__(*args, **more)
        self._table = table
        self._not_built = not_built
        self._instead = instead or {}
        self._old_names = old_names or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in self._not_built:
            raise NotBuiltError(f"{self.name} {cmd_name} is not built yet", fix=self._instead.get(cmd_name))
        place = self._table[cmd_name][0] if cmd_name in self._table else self._old_names.get(cmd_name)
        if place is None:
            return None
        module, attribute = place.split(":")
        command: click.Command = getattr(import_module(module), attribute)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """click suggests commands that are imported already, and here none is."""
        near = difflib.get_close_matches(args[0], self._table, 1)
        if near and args[0] not in (*self._table, *self._not_built, *self._old_names):
            ctx.fail(f"No such command {args[0]!r}. Did you mean {near[0]!r}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self._table.items()])


def run_program(group: click.Command, words: Sequence[str], *, program: str, says: str) -> None:
    """Errors are one line with the fix, which begins with `says`. Exit codes: 0 done, 1 failed, 2 wrong use or not built,
    130 interrupted."""
    try:
        group(list(words), prog_name=program, standalone_mode=False)
    except click.exceptions.Abort:
        sys.exit(130)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except HeadwayError as error:
        click.echo(f"{says}: {error.message}", err=True)
        sys.exit(exit_code(error))


def exit_code(error: HeadwayError) -> int:
    """2 when the command line has to change, or the doctor could not tell; 1 when something else has to change."""
    return 2 if error.reason in _WRONG_USE or isinstance(error, DoctorError) else 1
