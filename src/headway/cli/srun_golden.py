"""`vllm-srun golden record|verify MODEL`."""

from __future__ import annotations

import sys
from pathlib import Path

import click
import orjson

from headway.cli.srun_single import single_model_options

DRIFT_CODE = 4


@click.group("golden")
def golden_group() -> None:
    """Record the answers of a model, or compare with the record."""


@golden_group.command("record")
@single_model_options
@click.option("--requests", default=None, type=click.Path(path_type=Path, dir_okay=False), help="More requests, JSON: name -> {surface, body}.")
@click.option("--output", default=None, type=click.Path(path_type=Path, dir_okay=False), help="File; absent = where the self-check looks.")
@click.option("--json", "as_json", is_flag=True, help="Print what was recorded as JSON.")
def record_command(
    model: str, revision: str | None, family: str | None, threads: int | None, accept_licence: tuple[str, ...], requests: Path | None,
    output: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Answer the fixed requests of the self-check, and those of --requests, and keep the answers."""
    from headway.runtime.loading.model_entry import ModelEntry
    from headway.runtime.one_model import one_model
    from headway.runtime.selfcheck.golden_record import read_requests, record
    from headway.runtime.settings import WorkerSettings

    given = {} if requests is None else read_requests(requests)
    settings = WorkerSettings(threads=threads, accept_licence=accept_licence)
    with one_model(ModelEntry(model, revision=revision, family=family), settings) as one:
        done = record(one, given, output)
    if as_json:
        click.echo(orjson.dumps(done.as_json(), option=orjson.OPT_INDENT_2).decode())
        return
    click.echo(f"{len(done.answered)} answers of model {done.model_sha256[:16]} on {done.accelerator}: {', '.join(done.answered)}")
    click.echo(f"written to {done.path}")


@golden_group.command("verify")
@single_model_options
@click.option("--reference", default=None, type=click.Path(path_type=Path, dir_okay=False, exists=True), help="File that `record` wrote; absent = found.")
@click.option("--tolerance", default=None, type=click.FloatRange(0), help="Largest difference of a number; absent = the device's, 1e-3 on CPUs.")
@click.option("--json", "as_json", is_flag=True, help="Print the comparison as JSON.")
def verify_command(
    model: str, revision: str | None, family: str | None, threads: int | None, accept_licence: tuple[str, ...], reference: Path | None,
    tolerance: float | None, as_json: bool,
) -> None:  # fmt: skip
    """Ask again and compare. Exit codes: 0 as recorded, 4 answers have drifted, 1 and 2 for errors."""
    from headway.runtime.loading.model_entry import ModelEntry
    from headway.runtime.one_model import one_model
    from headway.runtime.selfcheck.golden_record import verify
    from headway.runtime.settings import WorkerSettings

    settings = WorkerSettings(threads=threads, accept_licence=accept_licence)
    with one_model(ModelEntry(model, revision=revision, family=family), settings) as one:
        done = verify(one, reference, tolerance)
    result = done.result
    if as_json:
        click.echo(orjson.dumps(done.as_json(), option=orjson.OPT_INDENT_2).decode())
    else:
        click.echo(f"{result.matched} of {result.checked} answers are as recorded in {result.reference} (tolerance {done.tolerance:g})")
        if result.reason is not None:
            click.echo(result.reason)
        for name, (then, now) in done.changed.items():
            click.echo(f"{name}: recorded with {then}, now {now}")
    if result.status != "matched":
        sys.exit(DRIFT_CODE)
