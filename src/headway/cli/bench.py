"""`headway bench throughput | latency | serve | kernels | link`."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from statistics import fmean
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from headway.bench.measures import percentile, summarize
from headway.bench.prompts import Prompt, make_prompts
from headway.cli.bench_kernels import kernels_command
from headway.cli.bench_link import link_command
from headway.cli.bench_options import ManyValues, dataset_options, not_built, numbers, pairs, take_dataset
from headway.cli.serve_config import DEFAULT_MODEL, engine_arguments
from headway.errors import ConfigError
from headway.telemetry.logs import configure_logging

if TYPE_CHECKING:
    from headway.bench.measures import Exchange
    from headway.bench.offline import Throughput

_MEASURES = ("ttft", "tpot", "itl", "e2el")
_GOALS = ("ttft", "tpot", "e2el")
_ENGINE_HELP = "All other options are engine options, as for `headway serve` (dtype, max-model-len, max-num-seqs, ...)."
_ENGINE_CONTEXT = {
    "ignore_unknown_options": True,
    "allow_extra_args": True,
    "token_normalize_func": lambda name: name.replace("_", "-"),
}


@click.group("bench")
def bench_group() -> None:
    """Measure: generation in this process (throughput, latency), a running server (serve), the kernels below it all (kernels), or the way between hosts (link)."""


bench_group.add_command(kernels_command)
bench_group.add_command(link_command)


@bench_group.command("throughput", context_settings=_ENGINE_CONTEXT, epilog=_ENGINE_HELP)
@click.option("--model", default=DEFAULT_MODEL, show_default=True, help="Model reference.")
@click.option("--backend", default="vllm", show_default=True, help="vllm (this engine), vllm-chat, hf (transformers).")
@click.option("--n", default=1, show_default=True, type=click.IntRange(1), help="Sequences per prompt.")
@click.option("--num-warmups", default=0, show_default=True, type=click.IntRange(0), help="Prompts run before the clock starts.")
@click.option("--async-engine", is_flag=True, help="Through AsyncEngine instead of LLM.")
@click.option("--prequeue-requests", is_flag=True, help="Queue all requests before the first step; LLM always does.")
@click.option("--disable-detokenize", is_flag=True, help="Make no text.")
@click.option("--hf-max-batch-size", default=32, show_default=True, type=click.IntRange(1), help="Batch size of --backend hf.")
@click.option("--output-json", help="Write the result to this file.")
@not_built("--lora-path")
@dataset_options
@click.pass_context
def throughput(ctx: click.Context, /, **given: Any) -> None:
    """Generate for many prompts at once, report requests/s and tokens/s."""
    from headway.bench.offline import throughput_lines, throughput_record
    from headway.bench.pytorch_format import write_json
    from headway.bench.tokenizer import prompt_tokenizer

    if given["async_engine"] and (given["prequeue_requests"] or given["backend"] != "vllm"):
        raise ConfigError("--async-engine goes with --backend vllm and without --prequeue-requests", param="async_engine")
    configure_logging("Bench")
    measure = {"vllm": _throughput_llm, "vllm-chat": _throughput_llm, "hf": _throughput_transformers}.get(given["backend"])
    if measure is None:
        raise ConfigError(f"There is no backend {given['backend']!r}", param="backend", fix="Use vllm, vllm-chat or hf.")
    arguments = _engine_arguments(ctx.args)
    prompts = make_prompts(take_dataset(given), prompt_tokenizer(given["model"]))
    result = (_throughput_async if given["async_engine"] else measure)(arguments, prompts, given)
    click.echo(throughput_lines(result))
    if given["output_json"]:
        rates = {"requests_per_second": [result.requests_per_second], "tokens_per_second": [result.tokens_per_second]}
        write_json(given["output_json"], throughput_record(given["model"], result), rates)


def _throughput_llm(arguments: dict[str, Any], prompts: list[Prompt], given: dict[str, Any]) -> Throughput:
    from headway.bench.offline import run_llm
    from headway.engine.llm import LLM

    llm = LLM(given["model"], **arguments)
    how = {"chat": given["backend"] == "vllm-chat", "detokenize": not given["disable_detokenize"]}
    if given["num_warmups"]:
        run_llm(llm, prompts[: given["num_warmups"]], given["n"], progress=False, **how)
    return run_llm(llm, prompts, given["n"], progress=True, **how)


def _throughput_async(arguments: dict[str, Any], prompts: list[Prompt], given: dict[str, Any]) -> Throughput:
    from headway.bench.offline import run_async
    from headway.engine.arguments import engine_config
    from headway.engine.async_engine import AsyncEngine
    from headway.engine.traced import traced

    async def run() -> Throughput:
        config = engine_config(given["model"], arguments)
        engine = AsyncEngine(config, traced(config))
        engine.start()
        try:
            await engine.ready()
            how = {"detokenize": not given["disable_detokenize"]}
            if given["num_warmups"]:
                await run_async(engine, prompts[: given["num_warmups"]], given["n"], **how)
            return await run_async(engine, prompts, given["n"], **how)
        finally:
            await engine.shutdown()

    return asyncio.run(run())


def _throughput_transformers(arguments: dict[str, Any], prompts: list[Prompt], given: dict[str, Any]) -> Throughput:
    import torch

    from headway.bench.transformers_backend import TransformersModel

    name = str(arguments.pop("dtype", "bfloat16"))
    dtype = getattr(torch, {"auto": "bfloat16", "half": "float16", "float": "float32"}.get(name, name), None)
    if arguments or given["n"] != 1 or not isinstance(dtype, torch.dtype):
        raise ConfigError("--backend hf takes no engine options except a --dtype, and --n 1", param="backend")
    model = TransformersModel(given["model"], dtype)
    if given["num_warmups"]:
        model.generate(prompts[: given["num_warmups"]], given["hf_max_batch_size"])
    return model.generate(prompts, given["hf_max_batch_size"])


@bench_group.command("latency", context_settings=_ENGINE_CONTEXT, epilog=_ENGINE_HELP)
@click.option("--model", default=DEFAULT_MODEL, show_default=True, help="Model reference.")
@click.option("--input-len", "--input-tokens", "input_len", default=32, show_default=True, type=click.IntRange(1), help="Tokens per prompt.")
@click.option("--output-len", "--output-tokens", "output_len", default=128, show_default=True, type=click.IntRange(1), help="Tokens per answer.")
@click.option("--batch-size", default=8, show_default=True, type=click.IntRange(1), help="Prompts at once.")
@click.option("--n", default=1, show_default=True, type=click.IntRange(1), help="Sequences per prompt.")
@click.option("--num-iters-warmup", default=10, show_default=True, type=click.IntRange(0), help="Runs before the clock starts.")
@click.option("--num-iters", default=30, show_default=True, type=click.IntRange(1), help="Runs that count.")
@click.option("--disable-detokenize", is_flag=True, help="Make no text.")
@click.option("--output-json", help="Write the result to this file.")
@not_built("--use-beam-search", "--profile", takes_value=False)
@click.pass_context
def latency(ctx: click.Context, /, **given: Any) -> None:
    """Generate for one batch again and again, report the seconds it takes."""
    from headway.bench.offline import LATENCY_PERCENTILES, latency_lines, measure_latency, random_batch, run_llm
    from headway.bench.pytorch_format import write_json
    from headway.bench.tokenizer import prompt_tokenizer
    from headway.engine.llm import LLM

    configure_logging("Bench")
    arguments = _engine_arguments(ctx.args)
    vocab_size = prompt_tokenizer(given["model"]).vocab_size
    llm = LLM(given["model"], **arguments)
    batch = random_batch(vocab_size, given["batch_size"], given["input_len"], given["output_len"])
    rounds = given["num_iters_warmup"] + given["num_iters"]
    with _progress(rounds, "iterations") as advance:
        latencies = measure_latency(
            lambda: run_llm(llm, batch, given["n"], chat=False, detokenize=not given["disable_detokenize"], progress=False),
            given["num_iters_warmup"],
            given["num_iters"],
            advance,
        )
    percentiles = {percent: percentile(latencies, percent) for percent in LATENCY_PERCENTILES}
    click.echo(latency_lines(fmean(latencies), percentiles))
    if given["output_json"]:
        record = {"model_id": given["model"], "avg_latency": fmean(latencies), "latencies": latencies, "percentiles": percentiles}
        write_json(given["output_json"], record, {"latency": latencies})


@bench_group.command("serve", cls=ManyValues, context_settings={"token_normalize_func": lambda name: name.replace("_", "-")})
@click.option("--backend", "--endpoint-type", "backend", default="openai", show_default=True, help="openai, openai-chat, vllm.")
@click.option("--base-url", help="Server, such as http://127.0.0.1:8000; instead of --host and --port.")
@click.option("--host", default="127.0.0.1", show_default=True)
@click.option("--port", default=8000, show_default=True)
@click.option("--endpoint", help="Path of the API [default: that of the backend].")
@click.option("--model", help="Model [default: the first that the server names].")
@click.option("--served-model-name", help="Name to send [default: --model].")
@click.option("--tokenizer", help="Model reference whose tokenizer counts tokens [default: --model].")
@click.option("--request-rate", default=float("inf"), show_default=True, help="Requests/s; inf sends all at once.")
@click.option("--burstiness", default=1.0, show_default=True, help="Shape of the gamma distribution of the gaps; 1 is Poisson.")
@click.option("--max-concurrency", type=int, help="At most that many requests under way.")
@click.option("--ramp-up-strategy", type=click.Choice(["linear", "exponential"]), help="Let the rate rise.")
@click.option("--ramp-up-start-rps", type=float, help="Rate at the start of the ramp.")
@click.option("--ramp-up-end-rps", type=float, help="Rate at its end.")
@click.option("--goodput", multiple=True, help="Promises in ms that a good request keeps: ttft:500 tpot:50 e2el:9000.")
@click.option("--percentile-metrics", default="ttft,tpot,itl", show_default=True, help="Measures to print, of ttft,tpot,itl,e2el.")
@click.option("--metric-percentiles", default="99", show_default=True, help="Percentiles to compute.")
@click.option("--ignore-eos", is_flag=True, help="Let every answer run to its full length.")
@click.option("--num-warmups", default=0, show_default=True, type=click.IntRange(0), help="Requests before the load, one after the other.")
@click.option("--ready-check-timeout-sec", default=600.0, show_default=True, help="Wait so long for a first answer; 0 = no check.")
@click.option("--temperature", default=0.0, show_default=True)
@click.option("--top-p", type=float)
@click.option("--top-k", type=int)
@click.option("--min-p", type=float)
@click.option("--frequency-penalty", type=float)
@click.option("--presence-penalty", type=float)
@click.option("--repetition-penalty", type=float)
@click.option("--extra-body", help="JSON object merged into every request body.")
@click.option("--header", multiple=True, help="Extra header NAME=VALUE.")
@click.option("--disable-tqdm", is_flag=True, help="No progress bar.")
@click.option("--label", help="Name of this run, for the file name and the JSON.")
@click.option("--metadata", multiple=True, help="key=value pairs for the JSON.")
@click.option("--save-result", is_flag=True, help="Write the JSON.")
@click.option("--save-detailed", is_flag=True, help="Write it with one entry per request.")
@click.option("--append-result", is_flag=True, help="Add it to the file as one more line.")
@click.option("--result-dir", help="Folder of the JSON.")
@click.option("--result-filename", help="Its name [default: made of backend, rate, model and time].")
@not_built("--probe-request-rate", "--lora-modules")
@not_built("--plot-timeline", "--profile", takes_value=False)
@dataset_options
def serve(**given: Any) -> None:
    """Put a load on a running OpenAI-compatible server, report throughput and latencies. OPENAI_API_KEY is used if set."""
    from headway.bench.arrivals import Arrivals
    from headway.bench.openai_client import Target, default_endpoint
    from headway.bench.serve import LoadPlan, first_model, run_load
    from headway.bench.serve_report import Conditions, result, result_path, save, table
    from headway.bench.tokenizer import prompt_tokenizer

    endpoint = given["endpoint"] or default_endpoint(given["backend"])
    goals = _goals(given["goodput"])
    shown = [name.strip() for name in given["percentile_metrics"].split(",") if name.strip()]
    if unknown := set(shown) - set(_MEASURES):
        raise ConfigError(f"--percentile-metrics knows {', '.join(_MEASURES)}, found {', '.join(unknown)}", param="percentile_metrics")
    percents = numbers(given["metric_percentiles"], "metric-percentiles")
    metadata = tuple(pairs(given["metadata"], "=", "metadata"))
    body = _body(given)
    headers = dict(pairs(given["header"], "=", "header"))
    if key := os.environ.get("OPENAI_API_KEY"):
        headers.setdefault("Authorization", f"Bearer {key}")
    arrivals = Arrivals(
        given["request_rate"], given["burstiness"], given["ramp_up_strategy"],
        given["ramp_up_start_rps"] or 0.0, given["ramp_up_end_rps"] or 0.0,
    )  # fmt: skip
    plan = LoadPlan(arrivals, given["max_concurrency"], given["num_warmups"], given["ready_check_timeout_sec"], given["seed"])
    dataset = take_dataset(given)
    base_url = given["base_url"] or f"http://{given['host']}:{given['port']}"
    model = given["model"] or asyncio.run(first_model(base_url, headers, given["ready_check_timeout_sec"]))
    tokenizer_id = given["tokenizer"] or model
    tokenizer = prompt_tokenizer(tokenizer_id)
    target = Target(base_url, given["backend"], given["served_model_name"] or model, endpoint, headers, body)
    prompts = make_prompts(dataset, tokenizer)
    with _progress(len(prompts), "requests", hidden=given["disable_tqdm"]) as advance:
        exchanges, duration = asyncio.run(run_load(target, prompts, plan, tokenizer, lambda done: advance()))
    summary = summarize(exchanges, duration, percents, goals)
    conditions = Conditions(
        given["backend"], model, tokenizer_id, len(prompts), given["request_rate"], given["burstiness"],
        given["max_concurrency"], given["label"], metadata,
    )  # fmt: skip
    click.echo(table(summary, conditions, shown))
    _say_errors(exchanges)
    if given["save_result"] or given["save_detailed"] or given["append_result"]:
        now = datetime.now()
        record = result(summary, conditions, exchanges, now, detailed=given["save_detailed"])
        path = result_path(given["result_dir"], given["result_filename"], conditions, now)
        save(record, path, append=given["append_result"])
        click.echo(f"Saved to {path}")
    if not summary.completed:
        raise SystemExit(1)


def _body(given: dict[str, Any]) -> dict[str, Any]:
    names = ("temperature", "top_p", "top_k", "min_p", "frequency_penalty", "presence_penalty", "repetition_penalty")
    body: dict[str, Any] = {name: given[name] for name in names if given[name] is not None}
    if given["ignore_eos"]:
        body["ignore_eos"] = True
    if given["extra_body"]:
        try:
            extra = json.loads(given["extra_body"])
        except ValueError as error:
            raise ConfigError(f"--extra-body is not JSON: {error}", param="extra_body") from error
        if not isinstance(extra, dict):
            raise ConfigError("--extra-body must be a JSON object", param="extra_body")
        body |= extra
    return body


def _goals(items: tuple[str, ...]) -> dict[str, float]:
    goals: dict[str, float] = {}
    for name, text in pairs(items, ":", "goodput"):
        try:
            goals[name] = float(text)
        except ValueError:
            goals[name] = -1.0
        if name not in _GOALS or not goals[name] >= 0:
            raise ConfigError(f"--goodput knows {', '.join(_GOALS)} with milliseconds, found {name}:{text}", param="goodput")
    return goals


def _say_errors(exchanges: list[Exchange]) -> None:
    kinds: dict[str, int] = {}
    for failed in exchanges:
        if failed.error:
            kinds[failed.error] = kinds.get(failed.error, 0) + 1
    for error, count in sorted(kinds.items(), key=lambda kind: -kind[1])[:5]:
        click.echo(f"{count} x {error}", err=True)


def _engine_arguments(words: list[str]) -> dict[str, Any]:
    return engine_arguments(words, lambda warning: click.echo(f"warning: {warning}", err=True))


@contextmanager
def _progress(total: int, unit: str, *, hidden: bool = False) -> Iterator[Callable[[], None]]:
    """A bar on stderr; the value is called once for each thing done."""
    columns = (TextColumn(unit), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), disable=hidden) as progress:
        task = progress.add_task(unit, total=total)
        yield lambda: progress.advance(task)
