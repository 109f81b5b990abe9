"""`headway doctor net HOST:PORT`"""

from __future__ import annotations

import sys

import click

from headway.cli.doctor_answer import answer, json_option, language_option


@click.command("net")
@click.argument("address")
@json_option
@language_option
def net_command(address: str, as_json: bool, language: str | None) -> None:
    """Is ADDRESS (HOST:PORT, or a URL) reachable from here, and what speaks there? Resolves the name, connects, asks over
    http and https, and names who holds the port when it is one of this machine's."""
    from headway.doctor.live import examine_address

    context, report = examine_address(address)
    if not as_json:
        for line in context["host"]["probes"]:
            click.echo(f"  {line}")
    sys.exit(answer(report, as_json, language))
