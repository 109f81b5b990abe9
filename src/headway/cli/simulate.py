"""`headway simulate`: a traffic trace over 1 to 10,000 replicas that are not there."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from headway.errors import ConfigError

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from headway.bench.simulation.request_trace import RequestTrace
    from headway.bench.simulation.step_times import StepTimes

_FILE = click.Path(dir_okay=False, path_type=Path)
_TRAFFIC = ("rate", "num_prompts", "input_len", "output_len", "range_ratio", "burstiness", "prefixes", "prefix_len")


@click.command("simulate")
@click.argument("trace", required=False, type=_FILE)
@click.option("--step-times", type=_FILE, help="How long steps take: a file of --save-step-times, here or of `headway plan --cluster`.")
@click.option("--fit", multiple=True, type=_FILE, help="Fit the step times to records: what `HEADWAY_STEP_RECORDS=FILE headway serve` wrote. Repeatable.")
@click.option("--save-step-times", type=_FILE, help="Keep the step times in this file.")
@click.option("--rate", help="Made-up traffic in requests/s: 5, or a table second:rate as 0:5,600:20.")
@click.option("--num-prompts", default=1000, show_default=True, help="Requests of made-up traffic.")
@click.option("--input-len", default=512, show_default=True, help="Prompt tokens in the middle.")
@click.option("--output-len", default=128, show_default=True, help="Output tokens in the middle.")
@click.option("--range-ratio", default=0.5, show_default=True, help="Lengths are drawn from middle x (1 - ratio) to middle x (1 + ratio).")
@click.option("--burstiness", default=1.0, show_default=True, help="Shape of the gamma distribution of the gaps; 1 is Poisson, less is burstier.")
@click.option("--prefixes", default=0, show_default=True, help="Beginnings that prompts share.")
@click.option("--prefix-len", default=0, show_default=True, help="Tokens of each, in front of the prompt.")
@click.option("--seed", default=0, show_default=True)
@click.option("--replicas", default="1", show_default=True, help="How many engines; several counts with commas are compared: 2,4,8.")
@click.option("--placement", default="round-robin", show_default=True, help="round-robin, least-load, two-choices, prefix-aware.")
@click.option("--num-blocks", type=int, help="KV blocks of a replica, as `headway serve` logs them [default: what the step times were planned with].")
@click.option("--block-size", default=16, show_default=True)
@click.option("--max-num-batched-tokens", default=2048, show_default=True)
@click.option("--max-num-seqs", default=256, show_default=True)
@click.option("--enable-prefix-caching/--no-enable-prefix-caching", default=True, show_default=True)
@click.option("--ttft-ms", type=float, help="Promise: time to the first token.")
@click.option("--itl-ms", type=float, help="Promise: mean gap between tokens.")
@click.option("--e2e-ms", type=float, help="Promise: time to the last token.")
@click.option("--share", default=0.99, show_default=True, help="Of the requests, how many must keep all promises.")
@click.option("--price-per-hour", default=0.0, show_default=True, help="Of one replica, in any currency.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_context
def simulate_command(ctx: click.Context, /, trace: Path | None, as_json: bool, **given: Any) -> None:
    """Replay TRACE (or made-up traffic with --rate) and say what its requests would have seen: latencies, promises kept, throughput, use, cost.

    TRACE: one JSON object per line with arrival (seconds), prompt_tokens, output_tokens, and maybe prefix with prefix_tokens; or what
    `headway bench serve --save-detailed` saved; or a CSV with TIMESTAMP, ContextTokens, GeneratedTokens. With --fit and --save-step-times alone
    only the fit is made.
    """
    times = _step_times(given)
    if given["save_step_times"] is not None:
        from headway.bench.simulation.step_times import save_step_times

        save_step_times(times, given["save_step_times"])
        if trace is None and given["rate"] is None:
            click.echo(json.dumps(times.origin) if as_json else f"step times in {given['save_step_times']}: {json.dumps(times.origin)}")
            return
    if trace is not None and (unused := [name for name in _TRAFFIC if _was_given(ctx, name)]):
        raise ConfigError(f"--{unused[0].replace('_', '-')} belongs to made-up traffic, and TRACE is given", param=unused[0])
    requests = _trace(trace, given)
    outcomes = _outcomes(requests, times, given)
    if as_json:
        click.echo(json.dumps({"step_times": times.origin, "outcomes": outcomes}, indent=2))
    else:
        from headway.cli.simulate_screen import print_outcomes

        print_outcomes(outcomes, promised=any(given[name] is not None for name in ("ttft_ms", "itl_ms", "e2e_ms")), priced=given["price_per_hour"] > 0)


def _outcomes(trace: RequestTrace, times: StepTimes, given: dict[str, Any]) -> list[dict[str, Any]]:
    from rich.console import Console
    from rich.progress import Progress

    from headway.bench.simulation.fleet import Fleet, simulate
    from headway.bench.simulation.outcome import Promises, outcome
    from headway.bench.simulation.replica_limits import ReplicaLimits

    blocks = given["num_blocks"] or times.origin.get("num_blocks")
    if not isinstance(blocks, int) or isinstance(blocks, bool):
        raise ConfigError("--num-blocks is missing, and the step times do not tell it", param="num_blocks", fix="`headway serve` logs it as KV cache blocks.")
    limits = ReplicaLimits(blocks, given["block_size"], given["max_num_batched_tokens"], given["max_num_seqs"], given["enable_prefix_caching"])
    ttft, itl, e2e = (None if given[name] is None else given[name] / 1e3 for name in ("ttft_ms", "itl_ms", "e2e_ms"))
    promises = Promises(ttft, itl, e2e, given["share"])
    price = given["price_per_hour"]
    if not 0 <= price < float("inf"):
        raise ConfigError(f"--price-per-hour must be at least 0, found {price}", param="price_per_hour")
    fleets = [Fleet(times, limits, count, given["placement"], given["seed"]) for count in _counts(given["replicas"])]
    outcomes = []
    with Progress(console=Console(stderr=True), transient=True) as progress:
        for fleet in fleets:
            task = progress.add_task(f"{fleet.replicas} replicas", total=len(trace))
            replay = simulate(trace, fleet, partial(_update, progress, task))
            outcomes.append(outcome(trace, fleet, replay, promises, price))
    return outcomes


def _update(progress: Progress, task: TaskID, arrived: int) -> None:
    progress.update(task, completed=arrived)


def _step_times(given: dict[str, Any]) -> StepTimes:
    from headway.bench.simulation.step_times import load_step_times

    if (given["step_times"] is None) == (not given["fit"]):
        raise ConfigError(
            "give --step-times or --fit, one of them", param="step_times",
            fix="Record steps with `HEADWAY_STEP_RECORDS=FILE headway serve ...` under a load, then `headway simulate --fit FILE`.",
        )  # fmt: skip
    if given["step_times"] is not None:
        return load_step_times(given["step_times"])
    from headway.bench.simulation.step_fit import fit_step_times, read_step_records

    read = [read_step_records(path) for path in given["fit"]]
    return fit_step_times([work for works, _ in read for work in works], [took for _, seconds in read for took in seconds])


def _trace(path: Path | None, given: dict[str, Any]) -> RequestTrace:
    if path is not None:
        from headway.bench.simulation.trace_files import read_trace

        return read_trace(path)
    if given["rate"] is None:
        raise ConfigError("give TRACE, or made-up traffic with --rate", param="trace")
    from headway.bench.simulation.synthetic_trace import Traffic, synthetic_trace

    return synthetic_trace(
        Traffic(
            given["num_prompts"], _rates(given["rate"]), given["input_len"], given["output_len"], given["burstiness"], given["range_ratio"],
            given["prefixes"], given["prefix_len"], given["seed"],
        )
    )


def _rates(text: str) -> tuple[tuple[float, float], ...]:
    """"5" or "0:5,600:20"."""
    try:
        pairs = [part.rpartition(":") for part in text.split(",")]
        return tuple((float(second) if colon else 0.0, float(rate)) for second, colon, rate in pairs)
    except ValueError:
        raise ConfigError(f"--rate must be requests per second, or a table as 0:5,600:20, found {text!r:.60}", param="rate") from None


def _counts(text: str) -> list[int]:
    try:
        counts = [int(part) for part in text.split(",")]
    except ValueError:
        raise ConfigError(f"--replicas must be whole numbers with commas, found {text!r:.60}", param="replicas") from None
    if len(counts) > 32:
        raise ConfigError(f"--replicas compares at most 32 counts, found {len(counts)}", param="replicas")
    return counts


def _was_given(ctx: click.Context, name: str) -> bool:
    return ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
