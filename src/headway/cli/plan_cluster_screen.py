"""The answer of `headway plan --cluster` on one screen: the layouts side by side, and the sum behind the best, one line per term."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from headway.capacity.byte_text import byte_text

_MOST_ROWS: Final = 12


def print_cluster(console: Console, answer: Mapping[str, Any]) -> None:
    """An answer of `cluster_answer`."""
    console.print(escape(answer["verdict"]), style="bold green" if answer["fits"] else "bold red")
    cluster = answer["cluster"]
    console.print(escape(
        f"{cluster['nodes']} nodes x {cluster['devices_per_node']} x {cluster['device']}: {byte_text(cluster['memory_bytes'])}, {cluster['bandwidth'] / 1e9:,.0f} GB/s,"
        f" {cluster['flops'] / 1e12:,.1f} TFLOP/s ({cluster['origin']})"
    ), soft_wrap=True)  # fmt: skip
    console.print(_layouts(answer["layouts"]))
    best = answer["recommended"]
    if best is not None:
        for title, key in (("step of a decoding batch", "decode_step"), ("step of a prompt", "prompt_step")):
            _sum(console, title, best[key])
        if best["bubble"]:
            console.print(f"bubble of a lone prompt: (pp - 1) / (chunks + pp - 1) = {best['bubble']:.0%}")
        console.print(f"bound by {best['limited_by']}: {best['batch']} sequences in a batch, {best['sequences_per_replica']} in a replica")
        console.print(escape(answer["command"]), style="bold green", soft_wrap=True)
    if answer["step_times"] is not None:
        console.print(escape(f"step times of a replica with tp {answer['step_times']['tensor_parallel_size']} are in {answer['step_times']['file']}"), soft_wrap=True)
    for note in answer["notes"]:
        console.print(escape(note), style="yellow", soft_wrap=True)


def _layouts(rows: list[dict[str, Any]]) -> Table:
    table = Table(show_edge=False)
    for name in ("tp", "pp", "dp", "batch", "TTFT", "gap", "output tok/s", "weights each"):
        table.add_column(name, justify="right")
    table.add_column("why not", overflow="fold")
    for row in rows[:_MOST_ROWS]:
        sizes = [str(row[f"{kind}_parallel_size"]) for kind in ("tensor", "pipeline", "data")]
        weights = byte_text(row["weights_bytes_per_device"])
        if row["runs"]:
            table.add_row(
                *sizes, f"{row['batch']:,}", f"{row['ttft_seconds'] * 1e3:,.0f} ms", f"{row['itl_seconds'] * 1e3:,.1f} ms", f"{row['output_tokens_per_second']:,.0f}", weights, "",
            )  # fmt: skip
        else:
            table.add_row(*sizes, "-", "-", "-", "-", weights, escape(row["obstacle"]))
    if len(rows) > _MOST_ROWS:
        table.caption = f"and {len(rows) - _MOST_ROWS} more with --json"
    return table


def _sum(console: Console, title: str, cost: Mapping[str, Any]) -> None:
    console.print(f"{title}: {cost['seconds'] * 1e3:,.3f} ms", style="bold")
    for term in cost["terms"]:
        console.print(escape(f"  {'+' if term['counted'] else ' '} {term['seconds'] * 1e3:10,.3f} ms  {term['name']}: {term['arithmetic']}"), style=None if term["counted"] else "dim", soft_wrap=True)
