"""`vllm-sr config schema` and `config router`: what may be configured, and what is."""

from __future__ import annotations

import json
from pathlib import Path

import click

from headway.cli.sr_client import ManagementClient, management_options
from headway.errors import ConfigError
from headway.router.config.json_schema import view
from headway.router.config.load import load_document
from headway.router.config.normal_form import masked, normal_form, to_yaml


@click.command("schema")
@click.option("--full", is_flag=True, help="The whole schema, for editors.")
@click.option("--section", metavar="PATH", help="One section, such as providers or global.model_catalog.")
@click.option("--surface", metavar="KIND:NAME", help="One signal, algorithm, plugin or projection, such as algorithm:multi_factor.")
@click.option("--expanded", is_flag=True, help="With --section: a schema of its own, with everything that it refers to.")
@management_options(15.0)
def schema_command(full: bool, section: str | None, surface: str | None, expanded: bool, endpoint: str | None, timeout: float, token_env: str) -> None:
    """Print an index of sections and surfaces, or one of them. JSON Schema 2020-12."""
    if sum((full, section is not None, surface is not None)) > 1:
        raise ConfigError("--full, --section and --surface are three different things", param="section", fix="Give one of them.")
    kind, _, name = (surface or "").partition(":")
    if surface is not None and not (kind and name):
        raise ConfigError(f"--surface is KIND:NAME, such as signal:keyword; found {surface}", param="surface")
    chosen = "full" if full else "section" if section is not None else "surface" if surface is not None else "index"
    if endpoint is None:
        found = view(chosen, path=section or "", kind=kind, surface=name, expanded=expanded)
    else:
        query = {"view": chosen, "path": section or "", "kind": kind, "name": name, "expanded": str(expanded).lower()}
        client = ManagementClient(endpoint, timeout, token_env)
        found = client.call("GET", "/api/v1/config/schema", query={key: value for key, value in query.items() if value}).json()
    click.echo(json.dumps(found, indent=2, ensure_ascii=False))


@click.command("router")
@click.option("--config", "path", type=click.Path(dir_okay=False, path_type=Path), default=Path("config.yaml"), show_default=True, help="The file to read.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of YAML.")
@click.option("--show-secrets", is_flag=True, help="Print keys and passwords too, those from the environment among them.")
def router_command(path: Path, as_json: bool, show_secrets: bool) -> None:
    """Print a configuration as the router reads it: newest names, variables replaced, without what is the default anyway."""
    data = normal_form(load_document(path).document)
    data = data if show_secrets else masked(data)
    click.echo(json.dumps(data, indent=2, ensure_ascii=False) if as_json else to_yaml(data), nl=as_json)
