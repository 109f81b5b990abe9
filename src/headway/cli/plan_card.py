"""`headway plan MODEL --device CARD`: the answer as one JSON-ready object, for vLLM on cards."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import Any

from headway.capacity.byte_text import byte_text
from headway.capacity.card_plan import CardPlan, card_plan
from headway.capacity.ceilings import Roofs
from headway.capacity.device_table import Device, devices
from headway.capacity.model_shape import ModelShape
from headway.capacity.on_device import UTILIZATION, Placement, device_roofs, device_workload, on_device
from headway.capacity.quantization_table import quantizations
from headway.capacity.reverse import Wanted, devices_for
from headway.capacity.tensor_split import split_obstacle, tensor_splits
from headway.cli.plan_figures import cache_figures, ceiling_figures, format_figures, model_figures
from headway.cli.plan_question import Question
from headway.cli.plan_reverse import match_figures
from headway.cli.plan_words import Language, said
from headway.errors import ConfigError


def card_answer(shape: ModelShape, device: Device, asked: Question, language: Language) -> dict[str, Any]:
    """Raises ConfigError for models that no GPU engine serves."""
    if shape.kind == "table":
        raise ConfigError(f"{shape.name} runs on CPUs only: it is no network for a GPU", param="device", fix="Leave --device out.")
    placement = asked.placement
    plan = card_plan(shape, device, placement, asked.context, asked.sequences, may_split=asked.ranks is None)
    deployment = plan.deployment
    need = deployment.need(plan.context, asked.sequences or 1)
    roofs = device_roofs(device, placement)
    roofs = Roofs(asked.bandwidth or roofs.bandwidth, asked.flops or roofs.flops, "given" if asked.bandwidth or asked.flops else roofs.origin)
    kept = plan.cache if plan.fits else need.cache
    used = need.weights + need.activations + need.process + kept
    return {
        "model": model_figures(shape),
        "device": device_figures(device) | {"engine": "vllm", "count": placement.ranks},
        "memory": {
            "budget_bytes": deployment.budget,
            "utilization": placement.utilization,
            "weights_bytes": need.weights,
            "kv_cache_bytes": kept,
            "activation_bytes": need.activations,
            "process_bytes": need.process,
            "need_bytes": need.total,
            "free_bytes": deployment.budget - used,
            "kv_cache_tokens": plan.cache_tokens if plan.fits else 0,
            **cache_figures(deployment, plan.context),
        },
        "fits": plan.fits,
        "verdict": _verdict(shape, device, plan, need.total, asked, language),
        "max_model_len": plan.context,
        "concurrency": plan.sequences,
        "largest_context": deployment.largest_context(),
        "largest_concurrency": deployment.largest_concurrency(plan.context),
        "command": _command(shape, asked, plan),
        "ceilings": ceiling_figures(device_workload(shape, placement), roofs, plan.context, plan.sequences),
        "formats": _formats(shape, device, placement, plan.context, asked.sequences or 1),
        "tensor_parallel": [
            {
                "size": row.ranks, "runs": row.obstacle is None, "obstacle": row.obstacle, "bytes_per_device": row.bytes_per_device,
                "fits": row.fits, "largest_context": row.largest_context,
            }
            for row in tensor_splits(shape, device, placement, plan.context, asked.sequences or 1)
        ],
        "devices": [
            match_figures(match)
            for match in devices_for(shape, devices().values(), replace(placement, ranks=1), Wanted(plan.context, asked.sequences or 1, 8))
        ],
        "notes": [*shape.notes, *_notes(shape, device, placement)],
    }  # fmt: skip


def device_figures(device: Device) -> dict[str, Any]:
    """The line of the table."""
    return {
        "name": device.name, "title": device.title, "memory_bytes": device.memory_bytes, "bandwidth_bytes_per_second": device.bandwidth,
        "flops_per_second": dict(device.flops), "capability": device.capability, "source": device.source,
    }  # fmt: skip


def _formats(shape: ModelShape, device: Device, placement: Placement, context: int, sequences: int) -> list[dict[str, Any]]:
    rows = []
    for row in format_figures(shape):
        form = quantizations()[row["name"]]
        deployment = on_device(shape, device, replace(placement, quantization=form))
        refused = form.refused_by(device)
        rows.append(row | {
            "memory_bytes": deployment.need(context, sequences).weights, "refused": refused, "served_here": "vllm" in form.engines and refused is None,
            "fits": refused is None and deployment.fits(context, sequences), "largest_context": deployment.largest_context(),
        })  # fmt: skip
    return rows


def _verdict(shape: ModelShape, device: Device, plan: CardPlan, need: int, asked: Question, language: Language) -> str:
    budget, placement = byte_text(plan.deployment.budget), plan.placement
    if plan.fits:
        used = byte_text(plan.deployment.need(plan.context, plan.sequences).total)
        return said(language, "fits", sequences=plan.sequences, context=plan.context, need=used, budget=budget)
    obstacle = split_obstacle(shape, placement.ranks)
    weights = plan.deployment.need(1, 1).weights
    if obstacle is not None:
        text = said(language, "obstacle", why=obstacle)
    elif weights > plan.deployment.budget:
        text = said(language, "too_big", weights=byte_text(weights), budget=budget)
    else:
        text = said(language, "no_room", need=byte_text(need), budget=budget, sequences=asked.sequences or 1, context=plan.context)
    if plan.remedy is None:
        return f"{text} {said(language, 'no_remedy')}"
    better, context = plan.remedy
    return f"{text} {said(language, 'remedy', form=_form_title(shape, better), ranks=better.ranks, device=device.name, context=context)}"


def _form_title(shape: ModelShape, placement: Placement) -> str:
    return placement.quantization.title if placement.quantization is not None else shape.quantization or "BF16 / FP16"


def _command(shape: ModelShape, asked: Question, plan: CardPlan) -> str | None:
    """Of the plan, or of what makes it fit."""
    if not plan.fits and plan.remedy is None:
        return None
    placement, context = (plan.placement, plan.context) if plan.fits or plan.remedy is None else plan.remedy
    name = shlex.quote(shape.name) if " " not in shape.name else "MODEL"
    form = placement.quantization
    if form is not None and form.bits < 16 and form.name not in ("fp8",):  # fp8 is made while loading; others need a checkpoint of their own
        name = f"{form.name.upper()}_CHECKPOINT_OF_{name}"
    words = ["vllm", "serve", name]
    if form is not None and form.name == "fp8":
        words += ["--quantization", "fp8"]
    if placement.ranks > 1:
        words += ["--tensor-parallel-size", str(placement.ranks)]
    if context != shape.context_length:
        words += ["--max-model-len", str(context)]
    if asked.sequences is not None:
        words += ["--max-num-seqs", str(asked.sequences)]
    if placement.utilization != UTILIZATION:
        words += ["--gpu-memory-utilization", f"{placement.utilization:g}"]
    if asked.cache_dtype != "auto":
        words += ["--kv-cache-dtype", asked.cache_dtype]
    if asked.dtype != "auto":
        words += ["--dtype", asked.dtype]
    return " ".join(words)


def _notes(shape: ModelShape, device: Device, placement: Placement) -> list[str]:
    notes = []
    if device.vendor == "nvidia" and "bf16" not in device.flops:
        notes.append(f"{device.name} has no bf16: vLLM needs --dtype half on it")
    if placement.quantization is not None and (why := placement.quantization.refused_by(device)) is not None:
        notes.append(f"{placement.quantization.title} {why}")
    if shape.quantization == "gguf":
        notes.append("GGUF files need a plug-in of vLLM (vllm-gguf-plugin) or llama.cpp")
    return notes
