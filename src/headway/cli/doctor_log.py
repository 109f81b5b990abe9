"""`headway doctor log FILE...`"""

from __future__ import annotations

import sys
from pathlib import Path

import click

from headway.cli.doctor_answer import Form, answer, form_options
from headway.cli.reading_bar import reading_bar


@click.command("log")
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--context", type=click.Path(path_type=Path), help="What else is known: a YAML file, as `headway doctor collect` writes it.")
@form_options
def log_command(files: tuple[Path, ...], context: Path | None, form: Form) -> None:
    """Read the log FILES (vLLM, Headway, llama.cpp, SGLang, TensorRT-LLM, torch, NCCL, Ray; also packed; - is standard
    input) and say what went wrong first. Needs no network and no GPU, and changes nothing."""
    from headway.doctor.examine import examine

    with reading_bar(files) as progress:
        examined = examine(files, context, progress)
    sys.exit(answer(examined, form))
