"""`headway eval`: how good a model is, and whether it is still as good as another one."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from headway.errors import ConfigError, HeadwayError

if TYPE_CHECKING:
    from headway.evaluation.evaluation import Evaluation
    from headway.evaluation.request import EvaluationRequest
    from headway.evaluation.scoring import Progress

GOOD, BAD, CANNOT_TELL = 0, 1, 2
_EXIT: Final = {"pass": GOOD, "fail": BAD, "cannot tell": CANNOT_TELL}
_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command("eval")
@click.argument("model", required=False)
@click.option("--against", metavar="MODEL", help="The baseline, usually what MODEL was quantized from.")
@click.option("--quantize", "method", metavar="METHOD", help="Quantize MODEL (as `headway quantize` does) and evaluate the result against it.")
@click.option("--output", type=click.Path(path_type=Path), help="Folder of the quantized model, with --quantize. [default: MODEL-METHOD]")
@click.option("--base-url", metavar="URL", help="Evaluate a running OpenAI-compatible server instead; MODEL is the name it serves.")
@click.option("--tokenizer", metavar="MODEL", help="With --base-url: the model whose tokenizer is used; absent = the server's /tokenize.")
@click.option("--api-key", envvar="VLLM_API_KEY", help="Key of the server.")
@click.option("--text", "texts", multiple=True, type=_FILE, help="Text to measure perplexity on; repeatable. [default: one that comes with Headway]")
@click.option("--task", "tasks", multiple=True, type=_FILE, help="File of multiple-choice questions, one JSON object a line; repeatable. [default: 100 easy ones]")
@click.option("--num-fewshot", type=click.IntRange(0, 100), default=0, show_default=True, help="So many questions of each file are shown as examples.")
@click.option("--limit", type=click.IntRange(1), metavar="N", help="The first N questions of each task and the first N windows of each text.")
@click.option("--threshold", default="2%", show_default=True, metavar="SHARE", help="How much worse is still good enough.")
@click.option("--dtype", default="auto", show_default=True, type=click.Choice(["auto", "bfloat16", "float32"]), help="What both models compute in.")
@click.option("--max-length", type=click.IntRange(16), metavar="TOKENS", help="Longest sequence. [default: texts 1024, questions what the model reads]")
@click.option("--stride", type=click.IntRange(1), metavar="TOKENS", help="New tokens of a window of text. [default: half of it]")
@click.option("--cache/--no-cache", "keep", default=True, show_default=True, help="Keep what the baseline said, and use it again.")
@click.option("--accept-licence", multiple=True, metavar="WORD", help="Accept a licence that must be accepted.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
def eval_command(model: str | None, as_json: bool, **given: Any) -> None:
    """Measure MODEL: perplexity of a text, and questions with answers to choose from. With --against also how far its
    predictions are from those of the baseline, and a verdict.

    Exit codes: 0 it is good enough, 1 it is not, or the checkpoint is broken, 2 that cannot be told.
    """
    from headway.cli.eval_screen import show
    from headway.cli.stage_bar import stage_bar

    _check_use(model, given)
    try:
        with stage_bar() as progress:
            found = _evaluated(model, given, progress)
    except HeadwayError as error:
        if as_json:
            click.echo(json.dumps({"verdict": None, "error": {"message": error.message, "reason": error.reason, "param": error.param}}, indent=2))
        else:
            click.echo(f"headway eval: {error.message}", err=True)
        sys.exit(CANNOT_TELL)
    if as_json:
        click.echo(json.dumps(found.as_json(), indent=2))
    else:
        show(found)
    sys.exit(_EXIT[found.decision])


def _check_use(model: str | None, given: dict[str, Any]) -> None:
    if model is None and given["base_url"] is None:
        raise click.UsageError("name a model, or a server with --base-url")
    for flag, needed in (("output", "method"), ("tokenizer", "base_url")):
        if given[flag] is not None and given[needed] is None:
            raise click.UsageError(f"--{flag} is for --{'quantize' if needed == 'method' else 'base-url'}")
    if given["method"] is not None and (given["against"] is not None or given["base_url"] is not None):
        raise click.UsageError("--quantize measures against MODEL itself; leave --against and --base-url out")


def _evaluated(model: str | None, given: dict[str, Any], progress: Progress) -> Evaluation:
    from headway.evaluation.evaluate import evaluate, evaluate_server

    request = _request(model, given)
    if given["base_url"] is not None:
        return evaluate_server(given["base_url"], model, given["tokenizer"], given["api_key"], request, progress)
    assert model is not None
    if given["method"] is not None:
        from headway.cli.eval_quantize import quantized

        model = str(quantized(model, given["method"], given["output"], given["accept_licence"], progress))
    return evaluate(model, request, progress)


def _request(model: str | None, given: dict[str, Any]) -> EvaluationRequest:
    from headway.evaluation.request import EvaluationRequest
    from headway.evaluation.task_file import packaged_task, read_task
    from headway.evaluation.texts import packaged_text, read_texts

    return EvaluationRequest(
        texts=tuple(read_texts(given["texts"])) or (packaged_text(),),
        tasks=tuple(read_task(path, given["num_fewshot"]) for path in given["tasks"]) or (packaged_task(),),
        against=model if given["method"] is not None else given["against"], threshold=share(given["threshold"]), dtype=given["dtype"],
        max_length=given["max_length"], stride=given["stride"], limit=given["limit"], keep=given["keep"],
        accept_licence=given["accept_licence"],
    )  # fmt: skip


def share(text: str) -> float:
    """`1%` or `0.01`. Raises ConfigError."""
    parsed = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(%?)", text.strip())
    value = None if parsed is None else float(parsed[1]) / (100 if parsed[2] else 1)
    if value is None or not 0 < value < 1:
        raise ConfigError(f"--threshold must be a share such as 1% or 0.01, got {text!r:.40}", param="threshold", fix="Write --threshold 1%.")
    return value
