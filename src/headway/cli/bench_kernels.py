"""`headway bench kernels`."""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any, Final

import click
from rich.console import Console
from rich.progress import track
from rich.table import Table

from headway.errors import ConfigError, NotBuiltError

FAMILIES: Final = ("linear", "attention", "pointwise", "sampling")


@click.command("kernels")
@click.option("--only", multiple=True, type=click.Choice(FAMILIES), help="Families to measure; all by default.")
@click.option("--set", "instruction_set", help="Instruction set; the best that runs here by default.")
@click.option("--rounds", default=9, show_default=True, type=click.IntRange(1, 1000), help="Turns that native and torch take.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def kernels_command(only: tuple[str, ...], instruction_set: str | None, rounds: int, as_json: bool) -> None:
    """Measure every native kernel beside torch and beside what this machine can do at most.

    Weights and caches are rotated over copies, so that they come from memory. Stop everything else before you measure.
    """
    import torch

    from headway.bench.kernels import measure_kernels
    from headway.host.cpu_budget import cpu_budget
    from headway.host.host_roofs import measure_host_roofs
    from headway.kernels.native.library import native_library
    from headway.kernels.native.tape import Tape

    library = native_library()
    if not library.sets:
        raise NotBuiltError(f"There are no native kernels to measure: {library.missing}")
    chosen = instruction_set or library.sets[0]
    if chosen not in library.sets:
        raise ConfigError(f"There is no instruction set {chosen!r} here", param="set", fix=f"Use one of: {', '.join(library.sets)}.")
    threads = cpu_budget().threads
    torch.set_num_threads(threads)
    roofs = measure_host_roofs()
    cases = [case for family in only or FAMILIES for case in import_module(f"headway.bench.kernel_cases.{family}").CASES]
    measured = measure_kernels(cases, Tape(chosen, threads), roofs, rounds)
    console = Console(stderr=True)
    times = list(track(measured, "Measuring", len(cases), console=console, transient=True))
    if as_json:
        rows = [
            {
                "family": each.case.family, "kernel": each.case.name, "shape": each.case.shape, "native_us": each.native * 1e6,
                "torch_us": None if each.torch is None else each.torch * 1e6, "torch_is": each.case.beside, "floor_us": each.floor * 1e6,
                "bound_by": each.bound, "share_of_floor": each.share, "times_torch": each.gain,
            }
            for each in times
        ]  # fmt: skip
        click.echo(json.dumps({"set": chosen, "threads": threads, "quiet": roofs.quiet, "roofs": _roofs(roofs), "kernels": rows}, indent=2))
        return
    _show(times, chosen, threads, roofs)


def _roofs(roofs: Any) -> dict[str, float]:
    return {
        "memory_gb_s": roofs.read_bandwidth / 1e9, "cache_gb_s": roofs.cache_bandwidth / 1e9,
        **{f"{kind}_tera_op_s": speed / 1e12 for kind, speed in roofs.matrix.items()},
    }  # fmt: skip


def _show(times: list[Any], chosen: str, threads: int, roofs: Any) -> None:
    console = Console()
    figures = ", ".join(f"{name.replace('_', ' ')} {value:.2f}" for name, value in _roofs(roofs).items())
    table = Table(title=f"{chosen}, {threads} threads; {figures}")
    for name in ("kernel", "shape", "native us", "torch us", "times torch", "of the limit", "limit by", "torch is"):
        table.add_column(name, justify="left" if name in ("kernel", "shape", "limit by", "torch is") else "right")
    for each in times:
        table.add_row(
            each.case.name, each.case.shape, f"{each.native * 1e6:,.1f}", "-" if each.torch is None else f"{each.torch * 1e6:,.1f}",
            "-" if each.gain is None else f"{each.gain:.2f}", f"{each.share:.0%}", each.bound, each.case.beside,
        )  # fmt: skip
    console.print(table)
    if not roofs.quiet:
        console.print("Other processes took part of the cores while this ran: the figures are no good.", style="yellow")
