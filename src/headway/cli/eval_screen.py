"""An evaluation for people: a table and a verdict."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Final

from rich.console import Console

from headway.evaluation.evaluation import Evaluation
from headway.evaluation.interval import Interval
from headway.evaluation.judgement import Judgement
from headway.evaluation.measurement import Measurement
from headway.evaluation.task_results import TaskResult
from headway.evaluation.text_results import perplexity

_STYLES = {"pass": "bold green", "fail": "bold red", "cannot tell": "bold yellow"}
_Row = tuple[str, str, str, str]
_HEADS: Final[_Row] = ("", "baseline", "model", "difference")


def show(found: Evaluation) -> None:
    console = Console(highlight=False, markup=False)
    if found.measured is not None:
        for line in _table(list(_rows(found, found.measured)), compared=found.base is not None):
            console.print(line, soft_wrap=True)
        for line in _notes(found, found.measured):
            console.print(line, style="dim", soft_wrap=True)
    console.print(f"{found.decision.upper()}: {_said(found)}", style=_STYLES[found.decision], soft_wrap=True)
    if found.cause is not None:
        console.print(f"Likely cause: {found.cause}", soft_wrap=True)
    elif found.decision == "fail" and found.problem is None:
        console.print("Nothing points to a damaged file. Formats with more bits, awq and gptq lose less (docs/quantization.md).", soft_wrap=True)


def _table(rows: list[_Row], *, compared: bool) -> Iterator[str]:
    """Lines of full width: on a narrow screen they wrap, and nothing is cut."""
    widths = [max(map(len, column)) for column in zip(_HEADS, *rows, strict=True)]
    for name, base, own, difference in [_HEADS, *rows]:
        cells = [name.ljust(widths[0]), *([base.rjust(widths[1])] if compared else []), own.rjust(widths[2]), *([difference] if compared else [])]
        yield "  ".join(cells).rstrip()


def _rows(found: Evaluation, measured: Measurement) -> Iterator[_Row]:
    judgements = {each.measure: each for each in found.comparison.judgements} if found.comparison else {}
    if measured.texts:
        own, base = perplexity(measured.texts), perplexity(found.base.texts) if found.base else None
        judged = judgements.get("perplexity")
        yield "perplexity of a token", _number(base.per_token if base else None), _number(own.per_token), _percent(judged.worse) if judged else ""
        yield "perplexity of a word", _number(base.per_word if base else None), _number(own.per_word), ""
        yield "bits for a byte", f"{base.bits_per_byte:.4f}" if base else "", f"{own.bits_per_byte:.4f}", ""
    if measured.divergence is not None:
        kl = measured.divergence
        yield "KL divergence", "", f"{kl.mean:.3g}", f"median {kl.median:.3g}, 99 of 100 below {kl.p99:.3g}, at most {kl.most:.3g}"
        yield "same first choice", "", f"{kl.agreement:.2%}", ""
    for i, result in enumerate(measured.tasks):
        base_task = found.base.tasks[i] if found.base else None
        yield _task_name(result), _share(base_task, "acc"), _share(result, "acc"), _task_difference(found, i)
        yield "  by length of choice", _share(base_task, "acc_norm"), _share(result, "acc_norm"), ""


def _task_name(result: TaskResult) -> str:
    shots = f", {len(result.task.examples)} examples" if result.task.examples else ""
    return f"{result.task.name}: {len(result.task.questions)} questions{shots}"


def _task_difference(found: Evaluation, place: int) -> str:
    if found.comparison is None:
        return ""
    task = found.comparison.tasks[place]
    return f"{_points(task.drop)}; {task.changed} answers differ, {task.lost} lost, {task.gained} gained (p = {task.p:.2g})"


def _notes(found: Evaluation, measured: Measurement) -> Iterator[str]:
    if measured.texts:
        own = perplexity(measured.texts)
        names = ", ".join(each.text.text.name for each in measured.texts)
        dtype = f", computed in {found.settings['dtype']}" if found.settings["dtype"] else ""
        yield f"text {names}: {own.tokens:,} tokens, {own.nbytes:,} bytes, windows of {found.settings['window']} tokens every {found.settings['stride']}{dtype}"
    if found.base_kept:
        yield "the baseline's results are those of an earlier run"
    if found.comparison is not None and found.comparison.divergence_missing is not None:
        yield f"distributions were not compared: {found.comparison.divergence_missing}"


def _said(found: Evaluation) -> str:
    if found.problem is not None:
        return f"{found.model}: {found.problem}"
    if found.comparison is None:
        return {
            "pass": "it makes sense of the text. Whether it is as good as another model is told with --against.",
            "cannot tell": "without a text and without --against there is nothing to judge it by.",
        }[found.decision]
    deciding = [each for each in found.comparison.judgements if each.decision == found.decision and (each.proving or found.decision == "fail")]
    return "; ".join(_reason(each) for each in deciding) + "."


def _reason(judgement: Judgement) -> str:
    worse = judgement.worse
    unit = "points" if judgement.measure.startswith("accuracy") else "%"
    allowed = f"{100 * judgement.threshold:.3g} {unit}"
    if judgement.decision == "pass":
        return f"{judgement.measure} is at most {_plain(worse.high)} {unit} worse, {allowed} are allowed"
    if judgement.decision == "fail":
        return f"{judgement.measure} is {_plain(worse.value)} {unit} worse (at least {_plain(worse.low)}), {allowed} are allowed"
    return f"{judgement.measure} may be between {_plain(worse.low)} and {_plain(worse.high)} {unit} worse, {allowed} are allowed; {judgement.more}"


def _plain(share: float) -> str:
    return f"{100 * share:,.2g}" if abs(share) < 1 else f"{100 * share:,.0f}" if math.isfinite(share) else "infinitely"


def _percent(worse: Interval) -> str:
    return f"{_signed(worse.value)} % ({_signed(worse.low)} to {_signed(worse.high)})"


def _points(drop: Interval) -> str:
    """A drop of accuracy as a change of it."""
    return f"{_signed(-drop.value)} points ({_signed(-drop.high)} to {_signed(-drop.low)})"


def _signed(share: float) -> str:
    return f"{100 * share + 0.0:+,.1f}" if abs(share) < 100 else f"{100 * share:+.1e}"


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.3f}" if value < 1e5 else f"{value:.2e}"


def _share(result: TaskResult | None, measure: str) -> str:
    if result is None:
        return ""
    figures = result.as_json()
    return f"{figures[measure]:.1%} ± {figures[f'{measure}_stderr']:.1%}"
