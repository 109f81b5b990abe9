"""`headway plan MODEL` for this machine: the answer as one JSON-ready object."""

from __future__ import annotations

import shlex
from typing import Any

from headway.artifacts.quantization_claim import METHOD_NAMES, READABLE_FORMATS
from headway.capacity.byte_text import byte_text
from headway.capacity.ceilings import Roofs
from headway.capacity.host_plan import HostPlan, host_plan
from headway.capacity.model_shape import ModelShape
from headway.capacity.on_host import host_ceiling_roofs, host_workload
from headway.cli.plan_figures import cache_figures, ceiling_figures, format_figures, model_figures
from headway.cli.plan_question import Question
from headway.cli.plan_words import Language, said
from headway.host.host_roofs import HostRoofs
from headway.host.memory_budget import MemoryBudget


def host_answer(shape: ModelShape, asked: Question, memory: MemoryBudget, measured: HostRoofs | None, language: Language) -> dict[str, Any]:
    """`measured` None leaves the ceilings out unless bandwidth and FLOP/s are given."""
    plan = host_plan(
        shape, memory, dtype_bytes=asked.dtype_bytes, context=asked.context, sequences=asked.sequences, utilization=asked.utilization
    )
    deployment = plan.deployment
    need = deployment.need(plan.context, plan.sequences)
    total = need.weights + need.process + plan.cache + plan.activations
    roofs = _roofs(asked, measured, shape)
    return {
        "model": model_figures(shape),
        "device": {"name": "this machine", "engine": deployment.engine, "count": 1, "memory_bytes": memory.limit, "limited_by": memory.limited_by},
        "memory": {
            "budget_bytes": deployment.budget,
            "weights_bytes": deployment.weights,
            "kv_cache_bytes": plan.cache,
            "activation_bytes": plan.activations,
            "process_bytes": need.process,
            "need_bytes": total,
            "free_bytes": deployment.budget - total,
            "kv_cache_tokens": plan.cache_tokens,
            "kv_cache_rule": plan.rule,
            **cache_figures(deployment, plan.context),
        },
        "resident": {"ready_bytes": plan.resident_start, "cache_full_bytes": plan.resident_full},
        "fits": plan.fits,
        "verdict": _verdict(plan, total, language),
        "max_model_len": plan.context,
        "concurrency": plan.sequences,
        "largest_context": deployment.largest_context(),
        "largest_concurrency": deployment.largest_concurrency(plan.context),
        "command": _command(shape, asked, plan),
        "ceilings": None
        if roofs is None or not shape.active
        else ceiling_figures(host_workload(deployment), roofs, plan.context, plan.sequences) | {"prefix_hits": "prefill ceilings are for tokens that are computed"},
        "formats": [
            row | {"memory_bytes": deployment.weights, "served_here": "headway" in row["engines"], "fits": plan.fits} for row in format_figures(shape)
        ],
        "tensor_parallel": [],
        "notes": [*shape.notes, *_notes(shape, plan), *_disturbed(roofs, measured)],
    }


def _roofs(asked: Question, measured: HostRoofs | None, shape: ModelShape) -> Roofs | None:
    """What is given replaces what was measured."""
    if asked.bandwidth is not None and asked.flops is not None:
        return Roofs(asked.bandwidth, asked.flops, "given")
    if measured is None:
        return None
    found = host_ceiling_roofs(measured, asked.dtype_bytes, shape.integers)
    if asked.bandwidth is not None:
        return Roofs(asked.bandwidth, found.flops, "given")
    return found if asked.flops is None else Roofs(found.bandwidth, asked.flops, "given", found.cache_bytes, found.cache_bandwidth)


def _verdict(plan: HostPlan, total: int, language: Language) -> str:
    deployment = plan.deployment
    figures = {"need": byte_text(total), "budget": byte_text(deployment.budget), "context": plan.context, "sequences": plan.sequences}
    if plan.fits:
        return said(language, "fits" if deployment.shape.kv else "fits_plain", **figures)
    if deployment.weights > deployment.budget:
        return said(language, "too_big", weights=byte_text(deployment.weights), budget=byte_text(deployment.budget))
    longest = deployment.largest_context(plan.sequences)
    text = said(language, "no_room", **figures)
    return f"{text} {said(language, 'shorter', context=longest)}" if longest else text


def _command(shape: ModelShape, asked: Question, plan: HostPlan) -> str | None:
    """Flags only where they differ from what the engine does by itself; None for what has no server of its own, or does not fit."""
    if not plan.fits or (shape.kind == "table" and shape.name in ("lid-176", "all-minilm-l6-v2-int8-onnx")):
        return None
    name = shlex.quote(shape.name) if " " not in shape.name else "MODEL"
    if plan.deployment.engine == "runtime":
        return f"vllm-srun serve {name}"
    words = ["headway", "serve", name]
    if plan.context != shape.context_length:
        words += ["--max-model-len", str(plan.context)]
    if asked.sequences is not None:
        words += ["--max-num-seqs", str(plan.sequences)]
    if not plan.default_cache:
        words += ["--kv-cache-memory-bytes", str(plan.cache)]
    elif asked.utilization is not None:
        words += ["--gpu-memory-utilization", f"{asked.utilization:g}"]
    if asked.dtype != "auto":
        words += ["--dtype", asked.dtype]
    return " ".join(words)


def _disturbed(roofs: Roofs | None, measured: HostRoofs | None) -> list[str]:
    if roofs is None or roofs.origin != "measured" or measured is None or measured.quiet:
        return []
    return ["the machine was measured beside other load: its ceilings are estimated upwards; --measure measures again"]


def _notes(shape: ModelShape, plan: HostPlan) -> list[str]:
    notes = []
    if shape.quantization is not None and METHOD_NAMES.get(shape.quantization) not in ("gguf", *READABLE_FORMATS):
        notes.append(f"Headway's engine does not run {shape.quantization} checkpoints: the figures are those of the weights unpacked")
    elif shape.quantization is not None and shape.stored_bytes is not None:
        name = "GGUF" if shape.quantization == "gguf" else shape.quantization
        width, share = 8 * plan.deployment.dtype_bytes, shape.integers
        if share.parameters:
            kept = f"keeps {share.parameters / 1e6:,.1f} M weights as integers of {8 * share.nbytes / share.parameters:.2f} bits with their scales"
            notes.append(f"the file has {byte_text(shape.stored_bytes)} of {name}; the engine {kept}, and the others in {width} bits")
        else:
            notes.append(f"the file has {byte_text(shape.stored_bytes)}; the engine unpacks {name} weights to {width} bits per weight")
    if any(layer.window for layer in shape.kv) or shape.state_numbers:
        notes.append("Headway's engine keeps all positions of every layer that attends: windows and latent vectors save no memory here")
    return notes
