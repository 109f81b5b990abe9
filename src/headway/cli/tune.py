"""`headway tune MODEL`"""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headway.cli.doctor_answer import spoken
from headway.errors import ConfigError

if TYPE_CHECKING:
    from headway.doctor.tune.search import Step
    from headway.doctor.tune.tuning import Plan

_GOALS = ("throughput", "ttft", "itl")
_PROMISES = ("ttft", "tpot", "e2el")


@click.command("tune", context_settings={"ignore_unknown_options": True, "allow_extra_args": True})
@click.argument("model")
@click.option("--goal", type=click.Choice(_GOALS), default="throughput", show_default=True, help="What to improve.")
@click.option("--slo", multiple=True, metavar="NAME=TIME", help="A promise that must hold, such as ttft=200ms (ttft, tpot, e2el).")
@click.option("--knob", "asked", multiple=True, metavar="NAME=V1,V2", help="Vary this flag over these values instead of the usual ones.")
@click.option("--concurrency", type=click.IntRange(1, 4096), default=16, show_default=True, help="Requests at a time.")
@click.option("--num-prompts", type=click.IntRange(1, 100_000), default=48, show_default=True, help="Requests of a run.")
@click.option("--input-len", type=click.IntRange(1), default=128, show_default=True, help="Tokens of a prompt.")
@click.option("--output-len", type=click.IntRange(2), default=64, show_default=True, help="Tokens of an answer.")
@click.option("--trials", type=click.IntRange(1, 1000), default=40, show_default=True, help="Settings to try at most.")
@click.option("--repeats", type=click.IntRange(2, 50), default=5, show_default=True, help="Runs of a setting while it is unclear, and of the confirmation.")
@click.option("--server", default=None, help="Words that start the server [default: this program's `serve`], such as 'vllm serve'.")
@click.option("--ready-seconds", type=click.FloatRange(1), default=600.0, show_default=True, help="How long a server may take to start.")
@click.option("--record", type=click.Path(path_type=Path), help="File of the runs; the same command goes on from it. [default: tune-MODEL-GOAL.jsonl]")
@click.option("--page", type=click.Path(path_type=Path), help="Write the picture of the trade-off as a web page.")
@click.option("--png", type=click.Path(path_type=Path), help="Write it as a PNG.")
@click.option("--lang", "language", type=click.Choice(["en", "zh"]), help="Language of the result.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_context
def tune_command(ctx: click.Context, /, **given: Any) -> None:
    """Find the flags that serve MODEL best, by measuring: one flag at a time, each setting several times, until nothing
    brings more than the noise. Other options are the flags to start from, as for `headway serve`.

    A tuning that was interrupted goes on with the same command: every run is kept in the record.
    """
    from rich.console import Console

    from headway.doctor.tune.picture import points, write_page, write_png
    from headway.doctor.tune.server_runs import ServerRuns
    from headway.doctor.tune.tuning import result, run, said

    plan = _plan(given, ctx.args)
    console = Console(stderr=True, quiet=given["as_json"])
    record = given["record"] or Path(f"tune-{re.sub(r'[^A-Za-z0-9_.-]+', '-', Path(given['model']).name)}-{given['goal']}.jsonl")
    with console.status("preparing") as status:
        load, tokenizer = _load(given)
        runs = ServerRuns(plan.command, plan.goal, load, tokenizer, given["ready_seconds"], status.update)
        try:
            tuned, kept = run(plan, runs, record, lambda step: console.print(_line(step), highlight=False, markup=False))
        except KeyboardInterrupt:
            console.print(f"interrupted; the runs so far are kept in {record}, the same command goes on from there", highlight=False, markup=False)
            raise
    shown = points(kept.details, tuned.start, tuned.best)
    title = f"{given['model']}: {given['goal']}"
    if given["page"]:
        write_page(given["page"], title, shown)
    if given["png"]:
        write_png(given["png"], title, shown)
    if given["as_json"]:
        click.echo(json.dumps(result(plan, tuned), indent=2))
    else:
        click.echo(said(plan, tuned).speak(spoken(given["language"])))
    sys.exit(1 if tuned.failure(tuned.best) else 0)


def _line(step: Step) -> str:
    values = " ".join(f"{name}={value}" for name, value in step.setting)
    return f"  {step.verdict:<10} {values}" + (f"  ({step.why})" if step.why else "")


def _plan(given: dict[str, Any], start_words: list[str]) -> Plan:
    from headway.doctor.collect.gpus import gpus_part
    from headway.doctor.facts.launch import command_flags
    from headway.doctor.tune.search import Effort
    from headway.doctor.tune.setting import knobs_for
    from headway.doctor.tune.tuning import Plan
    from headway.host.cpu_budget import cpu_budget
    from headway.host.instruction_set import instruction_set

    server = shlex.split(given["server"]) if given["server"] else [sys.executable, "-m", "headway.cli.main", "serve"]
    start = dict(command_flags(shlex.join(start_words)))
    knobs = knobs_for(given["goal"], given["asked"], bool(gpus_part()["gpus"]))
    varied = {knob.name for knob in knobs}
    fixed = [word for name, value in start.items() if name not in varied for word in _words(name, value)]
    command = [*server, given["model"], *fixed]
    shown = [*(server if given["server"] else ("headway", "serve")), given["model"], *fixed]
    identity = {
        "command": given["server"] or "headway serve",
        "model": given["model"],
        "flags": fixed,
        "load": {name: given[name] for name in ("goal", "slo", "concurrency", "num_prompts", "input_len", "output_len")},
        "host": [instruction_set().model, cpu_budget().threads],
    }
    effort = Effort(most=given["repeats"], trials=given["trials"], confirm=given["repeats"])
    return Plan(command, shown, given["goal"], tuple(sorted((name, value) for name, value in start.items() if name in varied)), knobs, effort, identity)


def _words(name: str, value: str) -> list[str]:
    flag = f"--{name.replace('_', '-')}"
    return [flag] if value == "True" else [flag, value]


def _load(given: dict[str, Any]) -> tuple[Any, Any]:
    from headway.bench.prompts import DatasetOptions, make_prompts
    from headway.bench.tokenizer import prompt_tokenizer
    from headway.doctor.tune.server_runs import Load

    tokenizer = prompt_tokenizer(given["model"])

    def prompts(run: int) -> Any:
        return make_prompts(
            DatasetOptions(count=given["num_prompts"], input_len=given["input_len"], output_len=given["output_len"], seed=run + 1), tokenizer
        )

    return Load(prompts, given["concurrency"], min(4, given["num_prompts"]), promises(given["slo"])), tokenizer


def promises(texts: tuple[str, ...]) -> dict[str, float]:
    """`ttft=200ms`, `tpot=0.05s` as milliseconds. Raises ConfigError."""
    found: dict[str, float] = {}
    for text in texts:
        parsed = re.fullmatch(r"(\w+)=(\d+(?:\.\d+)?)(ms|s)", text)
        if parsed is None or parsed[1] not in _PROMISES:
            raise ConfigError(f"--slo must be NAME=TIME with a name of {', '.join(_PROMISES)}, found {text!r}", param="slo", fix="For example --slo ttft=200ms.")
        found[parsed[1]] = float(parsed[2]) * (1000 if parsed[3] == "s" else 1)
    return found
