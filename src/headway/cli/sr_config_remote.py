"""`vllm-sr config get|plan|apply|versions|rollback`: the configuration of a running router."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from headway.cli.sr_client import ManagementClient, management_options
from headway.cli.sr_config_validate import from_json
from headway.router.config.load import read_source
from headway.router.config.normal_form import to_yaml

_PATH = "/api/v1/config"
_SLOW = 120.0  # an answer comes when the change serves, and models that it adds have loaded

_config = click.option(
    "--config", "path", type=click.Path(dir_okay=False, path_type=Path), default=Path("config.yaml"), show_default=True, help="The new configuration."
)
_mode = click.option(
    "--mode", type=click.Choice(["replace", "merge"]), default="replace", show_default=True, help="merge: a patch, in which null removes a key."
)
_json = click.option("--json", "as_json", is_flag=True, help="Print the whole answer.")


@click.command("get")
@click.option("--format", "form", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True)
@management_options(15.0)
def get_command(form: str, endpoint: str | None, timeout: float, token_env: str) -> None:
    """Print the configuration. Secrets are shown to tokens that may see them."""
    response = ManagementClient(endpoint, timeout, token_env).call("GET", _PATH)
    if form == "json":
        _print({"etag": response.headers.get("etag", ""), "config": response.json()})
    else:
        click.echo(to_yaml(response.json()), nl=False)


@click.command("plan")
@_config
@_mode
@_json
@management_options(15.0)
def plan_command(path: Path, mode: str, as_json: bool, endpoint: str | None, timeout: float, token_env: str) -> None:
    """Show what would change; the router goes on as it is. Exit code 1 when the result would not be valid."""
    plan = _planned(ManagementClient(endpoint, timeout, token_env), path, mode)
    if as_json:
        _print(plan)
    else:
        _show(plan)
    if not plan.get("valid"):
        sys.exit(1)


@click.command("apply")
@_config
@_mode
@_json
@management_options(_SLOW)
def apply_command(path: Path, mode: str, as_json: bool, endpoint: str | None, timeout: float, token_env: str) -> None:
    """Plan, then change the configuration if nobody else has changed it since. Returns when it serves."""
    client = ManagementClient(endpoint, timeout, token_env)
    plan = _planned(client, path, mode)
    if not plan.get("valid") or not plan.get("changed"):
        if as_json:
            _print({"applied": False, "reason": "invalid" if not plan.get("valid") else "unchanged", "plan": plan})
        else:
            _show(plan)
        sys.exit(0 if plan.get("valid") else 1)
    method = "PATCH" if mode == "merge" else "PUT"
    result = client.call(method, _PATH, {"yaml": read_source(path).text}, etag=plan["current_etag"]).json()
    if as_json:
        _print({"applied": True, "plan": plan, "result": result})
    else:
        _show(plan)
        click.echo(f"Version {result.get('version')} serves.")


@click.command("versions")
@_json
@management_options(15.0)
def versions_command(as_json: bool, endpoint: str | None, timeout: float, token_env: str) -> None:
    """List the configurations that served, newest first."""
    found = ManagementClient(endpoint, timeout, token_env).call("GET", f"{_PATH}/versions").json()
    if as_json:
        _print(found)
        return
    for each in found.get("versions", ()):
        restored = f", version {each['restored']} brought back" if each.get("restored") else ""
        active = " (active)" if each["version"] == found.get("current") else ""
        click.echo(f"{each['version']:>6}  {each['timestamp']}  {each['source']}{restored}{active}")


@click.command("rollback")
@click.argument("version")
@_json
@management_options(_SLOW)
def rollback_command(version: str, as_json: bool, endpoint: str | None, timeout: float, token_env: str) -> None:
    """Bring VERSION back, as a new version, if nobody changes the configuration meanwhile."""
    client = ManagementClient(endpoint, timeout, token_env)
    etag = client.call("GET", _PATH).headers.get("etag", "")
    result = client.call("POST", f"{_PATH}/rollback", {"version": version}, etag=etag).json()
    if as_json:
        _print(result)
    else:
        click.echo(f"Version {version} serves again, as version {result.get('version')}.")


def _planned(client: ManagementClient, path: Path, mode: str) -> dict[str, Any]:
    plan: dict[str, Any] = client.call("POST", f"{_PATH}/plan", {"yaml": read_source(path).text, "mode": mode}).json()
    return plan


def _show(plan: dict[str, Any]) -> None:
    for each in plan.get("diagnostics", ()):
        click.echo(f"{each['severity']}: {from_json(each)}", err=True)
    if not plan.get("changed"):
        click.echo("Nothing changes.")
        return
    click.echo(plan.get("diff", ""), nl=False)
    for each in plan.get("changes", ()):
        click.echo(f"{each['kind']}: {each['path']}")
    for reason in plan.get("restart_required", ()):
        click.echo(f"needs a new start of the router: {reason}", err=True)


def _print(value: Any) -> None:
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))
