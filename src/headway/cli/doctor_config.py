"""`headway doctor config FILE`"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from headway.cli.doctor_answer import Form, answer, form_options


@click.command("config")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--here/--elsewhere", default=True, show_default=True, help="Whether it is meant for this machine.")
@form_options
def config_command(file: Path, here: bool, form: Form) -> None:
    """Read FILE (a shell script, Compose file, Kubernetes manifest or unit that starts a server, or a router's
    configuration) and say what will not work, before anything is started."""
    from headway.doctor.configured import examine_config

    sys.exit(answer(examine_config(file, here), form))
