"""The outcomes of `headway simulate` as a table, and a small picture of the traffic and the waiting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from rich.console import Console
from rich.table import Table

_BARS: Final = "▁▂▃▄▅▆▇█"


def print_outcomes(outcomes: Sequence[dict[str, Any]], *, promised: bool, priced: bool) -> None:
    """`promised`: there were promises to keep; `priced`: replicas have a price."""
    from headway.bench.simulation.outcome import smallest_good

    console = Console(highlight=False)
    first = outcomes[0]
    console.print(f"{first['requests']:,} requests, {first['placement']}; {first['prompt_tokens']:,} prompt and {first['output_tokens']:,} output tokens")
    console.print(_table(outcomes, promised, priced))
    for each in outcomes:
        if each["refused"]:
            console.print(f"{each['refused']:,} requests are longer than the KV cache of a replica", style="yellow")
            break
    console.print(f"arrivals         {sparkline(first['arrivals_over_time'])} each {first['arrivals_seconds']:,.1f} s", soft_wrap=True)
    for each in outcomes[:4]:
        top = max((value for value in each["ttft_over_time"] if value is not None), default=0.0)
        console.print(f"TTFT p99, {each['replicas']:>6} {sparkline(each['ttft_over_time'])} up to {_ms(top)}", soft_wrap=True)
    if promised:
        best = smallest_good(outcomes)
        console.print("None of these fleets keeps the promises." if best is None else f"{best['replicas']} replicas are enough.", style="bold yellow" if best is None else "bold green")


def _table(outcomes: Sequence[dict[str, Any]], promised: bool, priced: bool) -> Table:
    """One column for each fleet."""
    table = Table("replicas", show_edge=False)
    for each in outcomes:
        table.add_column(f"{each['replicas']:,}", justify="right")
    for title, key in (("TTFT", "ttft"), ("ITL", "itl"), ("E2E", "e2e")):
        for percent in ("p50", "p90", "p99"):
            table.add_row(f"{title} {percent}", *(_ms(each[key][percent]) for each in outcomes), end_section=percent == "p99")
    table.add_row("requests/s", *(f"{each['requests_per_second']:,.2f}" for each in outcomes))
    table.add_row("output tokens/s", *(f"{each['output_tokens_per_second']:,.1f}" for each in outcomes))
    table.add_row("busy", *(f"{each['utilization']['mean']:.0%}" for each in outcomes))
    table.add_row("prefix hits", *(f"{each['prefix_hit_share']:.0%}" for each in outcomes))
    table.add_row("preemptions", *(f"{each['preemptions']:,}" for each in outcomes), end_section=True)
    if promised:
        table.add_row("promises kept", *(f"{each['attained']:.2%}" for each in outcomes))
    if priced:
        table.add_row("cost", *(f"{each['cost']:,.2f}" for each in outcomes))
        table.add_row("per million output tokens", *(f"{each['cost_per_million_output_tokens']:,.3f}" for each in outcomes))
    return table


def sparkline(values: Sequence[float | None]) -> str:
    """One character per value, from nothing to the largest; blank where there is none."""
    most = max((value for value in values if value is not None), default=0.0)
    return "".join(" " if value is None else _BARS[min(len(_BARS) - 1, int(value / most * len(_BARS)))] if most > 0 else _BARS[0] for value in values)


def _ms(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{seconds * 1e3:,.1f} ms" if seconds < 10 else f"{seconds:,.1f} s"
