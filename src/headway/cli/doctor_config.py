"""`headway doctor config FILE`"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from headway.cli.doctor_answer import FINDINGS, Form, answer, form_options
from headway.errors import HeadwayError

if TYPE_CHECKING:
    from headway.doctor.configured import Flags


@click.command("config")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--here/--elsewhere", default=None, help="Whether it is meant for this machine [default: yes, but for a Kubernetes manifest].")
@form_options
def config_command(file: Path, here: bool | None, form: Form) -> None:
    """Read FILE (a shell script, Compose file, Kubernetes manifest or unit that starts a server, or a router's
    configuration) and say what will not work, before anything is started.

    Flags that nobody knows, memory, context and port of `headway serve` on this machine, limits of the container, and what
    the router's validator says.
    """
    from headway.doctor.configured import examine_config

    found = examine_config(file, here, judged_flags)
    remarks = [*found.flags.remarks, *found.variables]
    if not form.as_json:
        for sentence in remarks:
            click.echo(click.style("?  ", fg="yellow") + sentence)
    status = answer(found.examined, form, {"refused": found.flags.refused or None, "remarks": remarks})
    sys.exit(FINDINGS if found.flags.refused else status)


def judged_flags(words: Sequence[str]) -> Flags:
    """`words` of a command, the program first. The parser of `headway serve` knows the flags of vLLM as well; what this version
    does not have is a refusal for Headway only, and a name that it does not know may be one of another vLLM."""
    from headway.cli.flag_index import FlagIndex
    from headway.cli.parse import parse_words
    from headway.cli.serve_config import ALL_FLAGS
    from headway.doctor.collect.processes import server_program
    from headway.doctor.configured import Flags

    remarks: list[str] = []
    given = [word for place, word in enumerate(words[1:]) if place or word != "serve"]
    try:
        parse_words(given, FlagIndex(ALL_FLAGS), remarks.append)
    except HeadwayError as error:
        if server_program(words) == "headway":
            return Flags(error.message, tuple(remarks))
        if error.reason == "unknown_flag":
            remarks.append(error.message)
    return Flags("", tuple(remarks))
