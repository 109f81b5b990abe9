"""`vllm-srun evaluate MODEL`."""

from __future__ import annotations

from pathlib import Path

import click
import orjson

from headway.cli.srun_single import single_model_options


@click.command("evaluate")
@single_model_options
@click.option("--output", default=None, type=click.Path(path_type=Path, dir_okay=False), help="File; absent = where /v1/models looks.")
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
def evaluate_command(
    model: str, revision: str | None, family: str | None, threads: int | None, accept_licence: tuple[str, ...], output: Path | None, as_json: bool
) -> None:
    """Ask a decision model the packaged labelled questions; the model's card says how it did."""
    from headway.errors import ConfigError
    from headway.runtime.loading.model_entry import ModelEntry
    from headway.runtime.one_model import one_model
    from headway.runtime.quality.evaluation import evaluate
    from headway.runtime.quality.labelled_set import labelled_questions
    from headway.runtime.quality.record import quality_path, readout_of, write_quality
    from headway.runtime.settings import WorkerSettings

    settings = WorkerSettings(threads=threads, accept_licence=accept_licence)
    with one_model(ModelEntry(model, revision=revision, family=family), settings) as one:
        opened = one.opened
        if "decisions" not in opened.model.planners:
            raise ConfigError(f"{model} answers no decisions; it serves {', '.join(opened.model.planners)}", reason="unsupported_surface", param="model")
        found = one.device.call(lambda: evaluate(opened.model, labelled_questions()))
        identity = opened.identity.model_sha256
        readout = readout_of(opened.family.name, opened.model.facts)
    path = output or quality_path(identity)
    write_quality(path, identity, found, readout)
    if as_json:
        click.echo(orjson.dumps({"model_sha256": identity, "path": str(path), "types": found}, option=orjson.OPT_INDENT_2).decode())
        return
    for kind, quality in found.items():
        better = "better than" if quality.beats_majority else "not clearly better than"
        click.echo(f"{kind}: {quality.right} of {quality.asked} right, {better} the commonest answers ({quality.majority}); p = {quality.p:.2g}")
    click.echo(f"written to {path}")
