"""`headway doctor`: from a symptom to its cause."""

from __future__ import annotations

import click

from headway.cli.lazy_group import LazyGroup

_COMMANDS = {
    "log": ("headway.cli.doctor_log:log_command", "Read logs and say what went wrong first."),
}


@click.group("doctor", cls=LazyGroup, table=_COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
def doctor_group() -> None:
    """Find out why something is slow, out of memory or silent: the cause, the evidence, the remedy, the check.

    Exit status: 0 healthy, 1 findings, 2 could not tell.
    """
