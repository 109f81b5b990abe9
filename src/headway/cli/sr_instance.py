"""`vllm-sr instance`: the routers that run on this machine, and what they serve."""

from __future__ import annotations

import json

import click

from headway.cli.sr_client import ManagementClient, management_options
from headway.cli.sr_run_file import all_running_routers
from headway.cli.sr_status import show_statuses, status_command, status_of


@click.group("instance")
def instance_group() -> None:
    """Inspect routers that run here: all of them, the one of a configuration, or the models behind it."""


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def list_command(as_json: bool) -> None:
    """Show all routers of this user, wherever their configurations lie."""
    found = [status_of(router) for router in all_running_routers()]
    show_statuses(found, as_json)
    if not found and not as_json:
        click.echo("No router runs here. Start one with `vllm-sr serve`.", err=True)


@click.command("models")
@management_options(15.0)
def models_command(endpoint: str | None, timeout: float, token_env: str) -> None:
    """Print the model deployments of a router with the cards that their runtimes have told, as JSON."""
    answer = ManagementClient(endpoint, timeout, token_env).call("GET", "/api/v1/inventory/model-runtime")
    click.echo(json.dumps(answer.json(), indent=2, ensure_ascii=False))


instance_group.add_command(list_command)
instance_group.add_command(status_command)
instance_group.add_command(models_command)
