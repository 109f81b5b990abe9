"""`headway quantize MODEL --method METHOD`"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headway.artifacts.progress import DownloadBars
from headway.compression.method import METHODS, Method
from headway.errors import HeadwayError

if TYPE_CHECKING:
    from headway.compression.report import Report
    from headway.compression.request import QuantizeRequest
    from headway.compression.run import Progress

_DTYPES = ("bfloat16", "float16", "float32")


@click.command("quantize")
@click.argument("model")
@click.option("--method", type=click.Choice(list(METHODS)), required=True, help="; ".join(f"{each.name}: {each.about}" for each in METHODS.values()) + ".")
@click.option("--output", type=click.Path(path_type=Path), help="Folder to write; it must not be there. [default: MODEL-METHOD, here]")
@click.option("--calibration", type=click.Path(path_type=Path, dir_okay=False), help="Texts for awq and gptq: .txt, or .jsonl with text or messages. [default: those that come with Headway]")
@click.option("--samples", type=click.IntRange(8, 4096), default=128, show_default=True, help="Samples of those texts.")
@click.option("--max-length", type=click.IntRange(16, 8192), default=256, show_default=True, help="Tokens of a sample.")
@click.option("--group-size", type=click.Choice(["32", "64", "128"]), help="Inputs that share a scale (4 bits). [default: the largest that fits the model]")
@click.option("--dtype", type=click.Choice(_DTYPES), help="Of the tensors that stay dense, and of scales of groups. [default: that of MODEL]")
@click.option("--damping", type=click.FloatRange(0.0, 1.0, min_open=True), default=0.01, show_default=True, help="gptq: part of the mean of the Hessian's diagonal that is added to it.")
@click.option("--act-order/--no-act-order", default=True, show_default=True, help="gptq: inputs with the largest activations first.")
@click.option("--accept-licence", multiple=True, metavar="WORD", help="Accept a licence that must be accepted.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def quantize_command(model: str, accept_licence: tuple[str, ...], as_json: bool, **given: Any) -> None:
    """Compress MODEL (a folder, a .gguf file, a short name, owner/name of the hub) into a compressed-tensors checkpoint, which Headway,
    transformers and vLLM read. Embeddings, norms and the output head stay dense.

    Needs the memory of one layer. A run that was interrupted goes on with the same command, with the same bytes at its end.
    """
    from headway.artifacts.inspect import inspect
    from headway.compression.run import quantize

    try:
        with DownloadBars() as bars:
            card = inspect(model, accept_licence=accept_licence, progress=bars)
        with _bar(hidden=as_json) as progress:
            report = quantize(card, _request(model, given), progress)
    except HeadwayError as error:
        if as_json:
            click.echo(json.dumps({"error": {"message": error.message, "reason": error.reason, "param": error.param}}))
        raise
    if as_json:
        click.echo(json.dumps(report.as_json(), ensure_ascii=False, indent=2))
    else:
        _print(report)


def _request(model: str, given: dict[str, Any]) -> QuantizeRequest:
    import torch

    from headway.compression.gptq import GptqSettings
    from headway.compression.request import QuantizeRequest
    from headway.errors import ConfigError

    method = METHODS[given["method"]]
    for flag, wanted, why in (("calibration", method.calibrated, "needs no texts"), ("group_size", method.grouped, "has one scale for each output")):
        if given[flag] is not None and not wanted:
            raise ConfigError(f"--{flag.replace('_', '-')} was given, and --method {method.name} {why}", param=flag, fix="Leave it out.")
    return QuantizeRequest(
        method, given["output"] or default_folder(model, method), given["calibration"], given["samples"], given["max_length"],
        None if given["group_size"] is None else int(given["group_size"]), None if given["dtype"] is None else getattr(torch, given["dtype"]),
        GptqSettings(given["damping"], given["act_order"]),
    )  # fmt: skip


def default_folder(model: str, method: Method) -> Path:
    """Where the result goes when nobody says."""
    return Path(f"{_name(model)}-{method.name}")


def _name(model: str) -> str:
    """Of the folder: the last part of a path or of a name of the hub."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", Path(model.rstrip("/")).name.split("@")[0].removesuffix(".gguf")) or "model"


@contextmanager
def _bar(*, hidden: bool) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=hidden) as progress:
        task = progress.add_task("reading", total=None)
        yield lambda label, done, total: progress.update(task, description=label, completed=done, total=total)


def _print(report: Report) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(width=None if sys.stdout.isatty() else 120)
    measured = "weights" if report.calibration is None else "outputs on the calibration texts"
    table = Table(title=f"Error of {measured}, relative to the original", title_justify="left")
    columns: dict[str, dict[int, float]] = {}
    for each in report.layers:
        columns.setdefault(_kind(each["module"]), {}).setdefault(each["layer"], each["error"])
    table.add_column("layer", justify="right")
    for kind in columns:
        table.add_column(kind, justify="right")
    for layer in sorted({each["layer"] for each in report.layers}):
        table.add_row(str(layer), *(f"{column[layer]:.4f}" if layer in column else "" for column in columns.values()))
    console.print(table)
    size = f", groups of {report.group_size}" if report.group_size else ""
    lines = [
        f"{report.method}{size}: {report.bytes_before / 1e6:,.1f} MB -> {report.bytes_after / 1e6:,.1f} MB (dense in {report.dtype}:"
        f" {report.bytes_dense / 1e6:,.1f} MB); {report.bits:.2f} bits per weight, {report.matrix_bits:.2f} in what was compressed; {report.seconds:.0f} s",
        *(f"note: {note}" for note in report.notes),
        f"Written to {report.output}. Go on with:", *(f"  {command}" for command in report.commands),
    ]  # fmt: skip
    for line in lines:
        console.print(line, highlight=False, markup=False, soft_wrap=True)


def _kind(module: str) -> str:
    """Without the number of the layer; experts are one column, which shows the first of them."""
    return re.sub(r"\.experts\.\d+\.", ".experts.", module.split(".", 2)[2]).removesuffix(".projection")
