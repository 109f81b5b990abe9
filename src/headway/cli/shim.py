"""`headway shim install | remove`: the name `vllm` for Headway in this environment."""

from __future__ import annotations

import json

import click

from headway.shim.install import Outcome, install, remove, this_environment


@click.group("shim")
def shim_group() -> None:
    """Let the program `vllm` and `import vllm` mean Headway in this environment. Only where no vLLM is installed."""


@shim_group.command("install")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def install_command(as_json: bool) -> None:
    """Write a program `vllm` and an importable package `vllm` that stand for Headway."""
    _say(install(this_environment()), as_json)


@shim_group.command("remove")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def remove_command(as_json: bool) -> None:
    """Delete what `headway shim install` wrote, and nothing else."""
    _say(remove(this_environment()), as_json)


def _say(outcome: Outcome, as_json: bool) -> None:
    if as_json:
        files = [str(path) for path in outcome.files]
        click.echo(json.dumps({"action": outcome.action, "version": outcome.version, "files": files}))
        return
    click.echo(f"alias vllm {outcome.version}: {outcome.action}")
    for path in outcome.files:
        click.echo(f"  {path}")
