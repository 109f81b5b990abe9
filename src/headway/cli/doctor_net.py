"""`headway doctor net HOST:PORT`"""

from __future__ import annotations

import sys

import click

from headway.cli.doctor_answer import Form, answer, form_options


@click.command("net")
@click.argument("address")
@form_options
def net_command(address: str, form: Form) -> None:
    """Is ADDRESS (HOST:PORT, or a URL) reachable from here, and what speaks there? Resolves the name, connects, asks over
    http and https, and names who holds the port when it is one of this machine's."""
    from headway.doctor.live import examine_address

    context, examined = examine_address(address)
    if not form.as_json:
        for line in context["host"]["probes"]:
            click.echo(f"  {line}")
    sys.exit(answer(examined, form))
