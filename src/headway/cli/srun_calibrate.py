"""`vllm-srun calibrate MODEL --data FILE`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click
import orjson

from headway.cli.srun_single import single_model_options

if TYPE_CHECKING:
    from headway.runtime.calibration.calibrate import Calibrated
    from headway.runtime.calibration.report import Quality, TypeReport


@click.command("calibrate")
@single_model_options
@click.option("--data", required=True, type=click.Path(path_type=Path, dir_okay=False), help="Labelled examples, JSONL (docs/runtime.md).")
@click.option("--held-out", default=0.3, show_default=True, type=click.FloatRange(0.05, 0.9), help="Share of the states that is only measured on.")
@click.option("--min-examples", default=50, show_default=True, type=click.IntRange(5), help="Examples that a temperature needs.")
@click.option("--precision", default=None, type=click.FloatRange(0, 1, min_open=True), help="Also choose a threshold that gives this precision.")
@click.option("--png", default=None, type=click.Path(path_type=Path, dir_okay=False), help="Draw the reliability diagrams into this file.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def calibrate_command(
    model: str, revision: str | None, family: str | None, threads: int | None, accept_licence: tuple[str, ...], data: Path, held_out: float,
    min_examples: int, precision: float | None, png: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Fit temperatures of MODEL to labelled examples, and keep them where the model finds them when it is loaded."""
    from tqdm import tqdm

    from headway.runtime.calibration.calibrate import calibrate
    from headway.runtime.calibration.labelled import read_labelled
    from headway.runtime.calibration.picture import check_matplotlib, draw_reliability
    from headway.runtime.calibration.report import FitSettings
    from headway.runtime.loading.model_entry import ModelEntry
    from headway.runtime.one_model import one_model
    from headway.runtime.settings import WorkerSettings

    if png is not None:
        check_matplotlib()
    states = read_labelled(data)
    settings = WorkerSettings(threads=threads, accept_licence=accept_licence)
    with one_model(ModelEntry(model, revision=revision, family=family), settings) as one, tqdm(total=len(states), desc="states", disable=None) as bar:
        done = calibrate(one, data, states, FitSettings(held_out, min_examples, precision), progress=bar.update)
    if png is not None:
        draw_reliability(done.report, png)
    if as_json:
        click.echo(orjson.dumps(done.as_json(), option=orjson.OPT_INDENT_2).decode())
    else:
        _print(done)


def _print(done: Calibrated) -> None:
    report = done.report
    click.echo("temperatures: " + ", ".join(f"{key} {value:.3g}" for key, value in report.temperatures.items()))
    if report.at_bounds:
        click.echo(f"at the limit of what is fitted: {', '.join(report.at_bounds)}; give more examples, or harder ones")
    if report.unfitted:
        click.echo("too few examples for: " + ", ".join(f"{key} ({count})" for key, count in report.unfitted.items()))
    for reason, count in done.skipped.items():
        click.echo(f"skipped {count} questions: {reason}")
    for each in report.types:
        _print_type(each)
    click.echo(f"\nwritten to {done.path}")


def _print_type(each: TypeReport) -> None:
    click.echo(f"\n{each.kind}: {each.fitted} examples fitted, {each.held_out} held out")
    if each.before is None or each.after is None:
        return
    for when, quality in (("before", each.before), ("after", each.after)):
        click.echo(f"  {when:<6} accuracy {quality.accuracy:.3f}  NLL {quality.nll:.4f}  ECE {quality.ece:.4f}")
        _print_bins(quality)
    found = each.threshold
    if found is None:
        return
    if found.threshold is None:
        click.echo(f"  no threshold gives a precision of {found.wanted:g}")
        return
    reached = "none is answered" if found.precision is None else f"precision {found.precision:.3f}"
    click.echo(f"  threshold {found.threshold:.4f} for precision {found.wanted:g}: {found.abstained:.1%} abstained, {reached} on the held-out")


def _print_bins(quality: Quality) -> None:
    click.echo("    probability   examples  mean probability  right")
    for each in quality.bins:
        click.echo(f"    {each.low:.1f} to {each.high:.1f}  {each.count:>9}  {each.confidence:>16.3f}  {each.accuracy:.3f}")
