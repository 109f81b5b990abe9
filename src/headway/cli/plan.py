"""`headway plan`: memory, context, concurrency and speed of a model on this machine or on a card, before anything is loaded."""

from __future__ import annotations

import json
import sys
from typing import Any, cast

import click

from headway.capacity.device_table import Device
from headway.capacity.model_shape import ModelShape
from headway.capacity.on_device import CACHE_DTYPES
from headway.capacity.on_host import DTYPE_BYTES
from headway.cli.plan_question import Question, question
from headway.cli.plan_source import PlanSource, plan_source
from headway.cli.plan_words import LANGUAGES, Language
from headway.errors import ConfigError, HeadwayError
from headway.host.host_roofs import HostRoofs

FITS, DOES_NOT_FIT, CANNOT_TELL = 0, 1, 2


@click.command("plan")
@click.argument("model", required=False)
@click.option("--params", metavar="SIZE", help="Only the size of a model is known: 70B, 135M.")
@click.option("--device", metavar="NAME", help="A card such as rtx4090 or h100; absent = this machine. Alone: what runs on that card.")
@click.option("--which-device", is_flag=True, help="Which cards run MODEL.")
@click.option("--memory", metavar="SIZE", help="Memory of a device that no table has, with --bandwidth and --flops.")
@click.option("--max-model-len", type=int, metavar="TOKENS", help="Longest sequence; absent = the model's context, or what fits.")
@click.option("--concurrency", type=int, metavar="N", help="Sequences of that length at once.")
@click.option("--bandwidth", metavar="RATE", help="Memory bandwidth, as 936GB/s; absent = measured here, or the data sheet of the card.")
@click.option("--flops", metavar="RATE", help="Arithmetic, as 165TFLOP/s; absent = measured here, or the data sheet of the card.")
@click.option("--tensor-parallel-size", "-tp", type=int, metavar="N", help="Cards that share each layer.")
@click.option("--dtype", type=click.Choice(["auto", *DTYPE_BYTES]), default="auto", help="Of weights that are not quantized.")
@click.option("--kv-cache-dtype", type=click.Choice(list(CACHE_DTYPES)), default="auto", help="Of keys and values.")
@click.option("--quantization", metavar="FORMAT", help="Plan for weights in this format (see the formats of --json).")
@click.option("--gpu-memory-utilization", type=float, metavar="SHARE", help="Share of the memory that may be used, over 0 to 1.")
@click.option("--measure/--no-measure", default=None, help="Measure this machine anew, or not at all; absent = once, then remembered.")
@click.option("--cluster", metavar="FILE", help="Several devices or nodes, described in TOML or JSON: which tp, pp and dp to take.")
@click.option("--input-len", type=int, metavar="TOKENS", help="With --cluster: prompt tokens of a request [default: 1024].")
@click.option("--output-len", type=int, metavar="TOKENS", help="With --cluster: output tokens [default: 256].")
@click.option("--ttft-ms", type=float, metavar="MS", help="With --cluster: the first token comes no later.")
@click.option("--itl-ms", type=float, metavar="MS", help="With --cluster: the mean gap between tokens is no longer.")
@click.option("--save-step-times", metavar="FILE", help="With --cluster: for `headway simulate`, the step times of one replica of the best layout without pipeline stages.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.option("--lang", type=click.Choice(LANGUAGES), default="en", help="Language of the screen and the verdict.")
def plan_command(
    model: str | None, params: str | None, device: str | None, which_device: bool, measure: bool | None, as_json: bool, lang: str,
    cluster: str | None, input_len: int | None, output_len: int | None, ttft_ms: float | None, itl_ms: float | None, save_step_times: str | None,
    **options: Any,
) -> None:  # fmt: skip
    """Say what MODEL needs and what it can reach: a folder, a .gguf file, a config.json, a short name, owner/name of the hub.

    Reads headers and configurations only: no weights are loaded or downloaded. Exits with 1 when it does not fit, with 2 when that cannot be told.
    """
    try:
        if cluster is not None:
            from headway.cli.plan_cluster import cluster_answer

            others = {"--device": device, "--which-device": which_device or None, "--measure": measure}
            answer = cluster_answer(model, params, cluster, others | options, input_len, output_len, ttft_ms, itl_ms, save_step_times)
        else:
            _without_cluster(input_len=input_len, output_len=output_len, ttft_ms=ttft_ms, itl_ms=itl_ms, save_step_times=save_step_times)
            asked = question(device=device, **options)
            answer = _answer(model, params, asked, which_device, measure, cast(Language, lang))
    except HeadwayError as error:
        if as_json:
            click.echo(json.dumps({"error": {"message": error.message, "reason": error.reason, "param": error.param}}))
        click.echo(f"headway plan: {error.message}", err=True)
        sys.exit(CANNOT_TELL)
    if as_json:
        click.echo(json.dumps(answer, ensure_ascii=False, indent=2).encode("utf-8", "backslashreplace").decode())
    else:
        _print(answer, cast(Language, lang))
    sys.exit(FITS if answer.get("fits", True) else DOES_NOT_FIT)


def _without_cluster(**options: Any) -> None:
    for name, value in options.items():
        if value is not None:
            raise ConfigError(f"--{name.replace('_', '-')} belongs to --cluster", param=name, fix="Give --cluster FILE, or leave it out.")


def _answer(model: str | None, params: str | None, asked: Question, which_device: bool, measure: bool | None, language: Language) -> dict[str, Any]:
    """Imports what the question needs, and no more: a screen comes at once."""
    if model is None and params is None:
        from headway.cli.plan_reverse import models_answer

        return models_answer(_named(asked.device, which_device), asked, language)
    source = plan_source(model, params)
    shape = source.shape
    if which_device:
        from headway.cli.plan_reverse import devices_answer

        return devices_answer(shape, asked, language)
    if asked.device is not None:
        from headway.cli.plan_card import card_answer

        return card_answer(shape, asked.device, asked, language)
    from headway.cli.plan_host import host_answer
    from headway.host.memory_budget import memory_budget

    memory = memory_budget()  # before torch is in this process, which is not part of the plan
    return host_answer(_as_loaded(source, asked), asked, memory, _measured(asked, shape.active > 0, measure), language)


def _as_loaded(source: PlanSource, asked: Question) -> ModelShape:
    """What of a quantized checkpoint stays integers on this machine only its kernels know."""
    shape, card = source.shape, source.card
    if card is None or shape.kind != "decoder" or (shape.quantization is None and card.format != "gguf"):
        return shape
    from headway.models.loaded_shape import loaded_shape  # imports torch, which takes a second

    return loaded_shape(shape, card, asked.dtype_bytes)


def _named(device: Device | None, which_device: bool) -> Device:
    if device is None or which_device:
        raise ConfigError(
            "give MODEL, or --params, or --device alone", param="model", fix="`headway plan --device rtx4090` tells what runs on that card."
        )
    return device


def _measured(asked: Question, wanted: bool, measure: bool | None) -> HostRoofs | None:
    """None when nobody needs it or nobody wants it; kept figures unless they are to be measured anew."""
    from headway.artifacts.cache_folders import headway_cache
    from headway.host.host_roofs import keep_host_roofs, measure_host_roofs, stored_host_roofs

    if not wanted or measure is False or (asked.bandwidth is not None and asked.flops is not None):
        return None
    kept = None if measure else stored_host_roofs(headway_cache())
    if kept is not None:
        return kept
    click.echo("headway plan: measuring memory bandwidth and matrix products, about 3 s (--no-measure leaves it out)", err=True)
    return keep_host_roofs(measure_host_roofs(), headway_cache())


def _print(answer: dict[str, Any], language: Language) -> None:
    from rich.console import Console

    from headway.cli.plan_screen import print_matches, print_plan

    console = Console(highlight=False)
    if "layouts" in answer:
        from headway.cli.plan_cluster_screen import print_cluster

        print_cluster(console, answer)
    elif "memory" in answer:
        print_plan(console, answer, language)
    else:
        print_matches(console, answer, language)
