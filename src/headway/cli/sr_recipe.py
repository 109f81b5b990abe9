"""`vllm-sr recipe`: single recipes of a running router."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import click
import yaml

from headway.cli.sr_client import ManagementClient, management_options
from headway.cli.sr_config_validate import from_json
from headway.errors import ConfigError, NotBuiltError
from headway.router.config.load import read_source
from headway.router.config.normal_form import to_yaml

_PATH = "/api/v1/config/recipes"
_SLOW = 120.0  # an answer comes when the change serves

_file = click.argument("recipe_file", type=click.Path(dir_okay=False, path_type=Path))


@click.group("recipe")
def recipe_group() -> None:
    """List, read, check and change single recipes of a running router."""


@click.command("list")
@management_options(15.0)
def list_command(endpoint: str | None, timeout: float, token_env: str) -> None:
    """Print the recipes and the configuration's ETag, as JSON."""
    _print(ManagementClient(endpoint, timeout, token_env).call("GET", _PATH).json())


@click.command("get")
@click.argument("name")
@management_options(15.0)
def get_command(name: str, endpoint: str | None, timeout: float, token_env: str) -> None:
    """Print one recipe as YAML."""
    click.echo(to_yaml(ManagementClient(endpoint, timeout, token_env).call("GET", f"{_PATH}/{quote(name, safe='')}").json()), nl=False)


@click.command("validate")
@_file
@management_options(15.0)
def validate_command(recipe_file: Path, endpoint: str | None, timeout: float, token_env: str) -> None:
    """Check a recipe as a part of what the router serves. Exit code 1 when it would not be valid."""
    _validated(ManagementClient(endpoint, timeout, token_env), _recipe(recipe_file))
    click.echo(f"{recipe_file} is valid.")


@click.command("apply")
@_file
@management_options(_SLOW)
def apply_command(recipe_file: Path, endpoint: str | None, timeout: float, token_env: str) -> None:
    """Add or replace a recipe, if nobody else changes the configuration meanwhile. Returns when it serves."""
    client, recipe = ManagementClient(endpoint, timeout, token_env), _recipe(recipe_file)
    etag = client.call("GET", _PATH).headers.get("etag", "")
    _validated(client, recipe)
    result = client.call("PUT", f"{_PATH}/{quote(recipe['name'], safe='')}", recipe, etag=etag).json()
    click.echo(f"Version {result.get('version')} serves.")


@click.command("delete")
@click.argument("name")
@management_options(_SLOW)
def delete_command(name: str, endpoint: str | None, timeout: float, token_env: str) -> None:
    """Remove a recipe that nothing leads to. Returns when the configuration without it serves."""
    client = ManagementClient(endpoint, timeout, token_env)
    etag = client.call("GET", _PATH).headers.get("etag", "")
    result = client.call("DELETE", f"{_PATH}/{quote(name, safe='')}", etag=etag).json()
    click.echo(f"Version {result.get('version')} serves.")


@click.command("plan", hidden=True)
@click.argument("words", nargs=-1)
def plan_command(words: tuple[str, ...]) -> None:
    raise NotBuiltError("vllm-sr recipe plan is not built", param="plan", fix="vllm-sr recipe validate checks it, vllm-sr config plan shows what a whole change does.")


@click.command("builtin", hidden=True, context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1)
def builtin_command(words: tuple[str, ...]) -> None:
    raise NotBuiltError("vllm-sr recipe builtin is not built: Headway installs no recipes", param="builtin", fix="vllm-sr config init writes a configuration to start from.")


@click.command("pack", hidden=True, context_settings={"ignore_unknown_options": True})
@click.argument("words", nargs=-1)
def pack_command(words: tuple[str, ...]) -> None:
    raise NotBuiltError("vllm-sr recipe pack is not built: recipes are parts of a configuration, not archives", param="pack", fix="Keep the YAML of vllm-sr recipe get.")


def _recipe(path: Path) -> dict[str, Any]:
    """Raises ConfigError for a file that holds no recipe with a name."""
    text = read_source(path).text
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{path} is not valid YAML: {' '.join(str(error).split())}", param="recipe_file") from None
    if not isinstance(found, dict) or not isinstance(found.get("name"), str):
        raise ConfigError(f"{path} must hold one recipe: a mapping with a name", param="recipe_file", fix="vllm-sr recipe get shows one.")
    return found


def _validated(client: ManagementClient, recipe: dict[str, Any]) -> None:
    """Raises ConfigError when it would not be valid; warnings go to standard error."""
    answer = client.call("POST", f"{_PATH}/validate", recipe).json()
    told = [from_json(each) for each in answer.get("diagnostics", ())]
    for each in told:
        click.echo(f"{each.severity}: {each}", err=True)
    if not answer.get("valid"):
        raise ConfigError("the configuration with this recipe would not be valid", reason="config_rejected", param="recipe_file")


def _print(value: Any) -> None:
    click.echo(json.dumps(value, indent=2, ensure_ascii=False))


for _command in (list_command, get_command, validate_command, apply_command, delete_command, plan_command, builtin_command, pack_command):
    recipe_group.add_command(_command)
