"""`vllm-sr spend`: what was used and spent, by API key and model, from the router's ledger."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, date, datetime
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from headway.cli.sr_place import config_option, state_folder
from headway.errors import HeadwayError
from headway.router.spend.ledger import FILE_NAME, Spent, read_spend
from headway.router.spend.period import period_start
from headway.router.spend.summary import GROUPS, summed

_DAY = click.DateTime(["%Y-%m-%d"])


@click.command("spend")
@config_option
@click.option("--per", type=click.Choice(["day", "week", "month", "total"]), default="month", show_default=True, help="The current period (UTC) to show.")
@click.option("--since", type=_DAY, help="First day, instead of the period's.")
@click.option("--until", type=_DAY, help="Last day.")
@click.option("--key", "only_key", help="Only this key.")
@click.option("--by", multiple=True, type=click.Choice(GROUPS), help="Rows to show; may be repeated. [default: key and model]")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def spend_command(
    config: Path, per: str, since: datetime | None, until: datetime | None, only_key: str | None, by: Sequence[str], as_json: bool
) -> None:  # fmt: skip
    """Show tokens and cost of the requests that this configuration's router answered."""
    first = since.date() if since else period_start(per, datetime.now(UTC).date())  # type: ignore[arg-type]
    last = until.date() if until else date.max
    path = state_folder(config) / FILE_NAME
    try:
        entries = [entry for entry in read_spend(path, first, last) if only_key is None or entry.key == only_key]
    except sqlite3.Error as error:
        raise HeadwayError(f"{path} cannot be read: {error}", reason="ledger_invalid", fix="Move it away; the router begins a new one.") from None
    members = tuple(by) or ("key", "model")
    rows = summed(entries, members)
    if as_json:
        click.echo(json.dumps([_shown(row, members) for row in rows], indent=2))
    elif rows:
        Console(highlight=False).print(_table(rows, members))
    else:
        click.echo("Nothing was spent in this time.")


def _shown(row: Spent, by: Sequence[str]) -> dict[str, object]:
    hidden = [name for name in GROUPS if name not in by]
    return {name: value for name, value in asdict(row).items() if name not in hidden}


def _table(rows: Sequence[Spent], by: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False)
    for name in by:
        table.add_column(name)
    for name in ("requests", "prompt tokens", "generated tokens", "cost", "estimated"):
        table.add_column(name, justify="right")
    for row in rows:
        cost = f"{row.cost:.6f} {row.currency}" if row.currency else "-"
        names = [getattr(row, name) or "(no key)" for name in by]
        table.add_row(*names, str(row.requests), str(row.prompt_tokens), str(row.completion_tokens), cost, str(row.estimated))
    return table
