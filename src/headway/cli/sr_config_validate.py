"""`vllm-sr config validate`: is this a configuration that the router can run?"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from headway.cli.sr_client import ManagementClient, management_options
from headway.cli.sr_ignored import gateway_option, ignored_options, tell_ignored
from headway.router.config.diagnostics import Diagnostic
from headway.router.config.document.document import Document
from headway.router.config.load import examine, read_source


@click.command("validate")
@click.option("--config", "path", type=click.Path(dir_okay=False, path_type=Path), default=Path("config.yaml"), show_default=True, help="The file to check.")
@click.option("--offline", is_flag=True, help="Check here, without asking a router; the default when no --endpoint is given.")
@click.option("--json", "as_json", is_flag=True, help="Print the diagnostics as JSON.")
@gateway_option
@ignored_options("--image")
@management_options(15.0)
def validate_command(path: Path, offline: bool, as_json: bool, endpoint: str | None, timeout: float, token_env: str) -> None:
    """Check a file: syntax, names, types, and what fields say about each other. Exit code 1 when it has errors.

    With --endpoint a running router checks it, with its own environment and models.
    """
    tell_ignored()
    source = read_source(path)
    if endpoint and not offline:
        answer = ManagementClient(endpoint, timeout, token_env).call("POST", "/api/v1/config/validate", {"yaml": source.text}).json()
        told = [from_json(each) for each in answer.get("diagnostics", ())]
        _report(path, bool(answer.get("valid")), told, None, as_json)
        return
    examined = examine(source)
    _report(path, examined.valid, examined.diagnostics, examined.document, as_json)


def from_json(found: dict[str, Any]) -> Diagnostic:
    """What a router tells; its path is text already and stands in the message."""
    where = f"{found['path']}: " if found.get("path") else ""
    return Diagnostic(found["reason"], where + found["message"], fix=found.get("fix"), line=found.get("line"), severity=found["severity"])


def _report(path: Path, valid: bool, diagnostics: Any, document: Document | None, as_json: bool) -> None:
    if as_json:
        click.echo(json.dumps({"valid": valid, "config": str(path), "diagnostics": [each.as_json() for each in diagnostics]}, indent=2, ensure_ascii=False))
    else:
        for each in diagnostics:
            click.echo(f"{each.severity}: {each}", err=True)
        errors = sum(each.severity == "error" for each in diagnostics)
        if not valid:
            click.echo(f"{path} has {errors} error{'s' if errors != 1 else ''}.", err=True)
        else:
            click.echo(f"{path} is valid{_summary(document)}.")
    if not valid:
        sys.exit(1)


def _summary(document: Document | None) -> str:
    if document is None:
        return ""
    routing = document.routing
    recipes = [routing, *(recipe.routing for recipe in document.recipes or ())]
    decisions = sum(len(recipe.decisions or ()) for recipe in recipes if recipe is not None)
    models = len((document.providers.models if document.providers else None) or ())
    return ": " + ", ".join(f"{count} {word}{'s' * (count != 1)}" for count, word in ((len(document.listeners or ()), "listener"), (models, "model"), (decisions, "decision")))
