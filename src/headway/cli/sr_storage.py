"""`vllm-sr storage`: what a router keeps."""

from __future__ import annotations

import json

import click

from headway.cli.sr_client import ManagementClient, management_options


@click.group("storage")
def storage_group() -> None:
    """See to what a router keeps: cached answers and documents."""


@storage_group.command("reembed")
@click.option("--dry-run", is_flag=True, help="Only show whose vectors there are.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@management_options(timeout=3600)
def reembed_command(endpoint: str | None, timeout: float, token_env: str, dry_run: bool, as_json: bool) -> None:
    """Make stored vectors again with the embedding model that the router uses now."""
    client = ManagementClient(endpoint, timeout, token_env)
    if dry_run:
        found = client.call("GET", "/api/v1/storage/representations").json()
        click.echo(json.dumps(found, indent=2) if as_json else _counted(found))
        return
    done = client.call("POST", "/api/v1/storage/reembed").json()
    click.echo(json.dumps(done, indent=2) if as_json else _told(done))
    parts = [*done["response_cache"], *([done["vector_stores"]] if done["vector_stores"] else [])]
    if any(part["failed"] for part in parts):
        raise click.exceptions.Exit(1)


def _counted(found: dict[str, dict[str, int]]) -> str:
    lines = [f"{store}: {count} vectors of {name}" for store, counts in found.items() for name, count in counts.items()]
    return "\n".join(lines) or "No vectors are stored."


def _told(done: dict[str, object]) -> str:
    lines = []
    caches = done["response_cache"]
    for part in caches if isinstance(caches, list) else ():
        lines.append(f"response cache, recipe {part['recipe']}: {part['done']} made again{_failure(part)}")
    documents = done["vector_stores"]
    if isinstance(documents, dict):
        lines.append(f"vector stores: {documents['done']} made again{_failure(documents)}")
    return "\n".join(lines) or "No vectors are stored."


def _failure(part: dict[str, object]) -> str:
    return f", {part['failed']} not ({part['stopped']})" if part["failed"] else ""
