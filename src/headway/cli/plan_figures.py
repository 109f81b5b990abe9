"""Parts of the answer of `headway plan` that every plan has: the model, its formats, the ceilings."""

from __future__ import annotations

from typing import Any

from headway.capacity.ceilings import Roofs, Workload, decode_ceiling, knee, prefill_ceiling
from headway.capacity.deployment import Deployment
from headway.capacity.model_shape import ModelShape
from headway.capacity.quantization_table import quantizations


def model_figures(shape: ModelShape) -> dict[str, Any]:
    """What the plan was made for. Counts that are not known are null."""
    decoder = shape.kind == "decoder"
    return {
        "name": shape.name,
        "kind": shape.kind,
        "architecture": shape.architecture or None,
        "parameters": shape.parameters or None,
        "active_parameters": shape.active or None,
        "layers": shape.layers or None,
        "hidden_size": shape.hidden or None,
        "attention_heads": shape.heads or None,
        "kv_heads": shape.kv_heads or None,
        "head_dim": shape.head_dim or None,
        "vocabulary": shape.vocabulary or None,
        "context_length": shape.context_length,
        "quantization": shape.quantization,
        "stored_bytes": shape.stored_bytes,
        "stored_types": dict(shape.stored_types),
        "kv_layers": [
            {"layers": layer.count, "kv_heads": layer.heads or None, "numbers_per_token": layer.numbers, "window": layer.window} for layer in shape.kv
        ]
        if decoder
        else [],
        "state_numbers_per_sequence": shape.state_numbers,
    }


def format_figures(shape: ModelShape) -> list[dict[str, Any]]:
    """Every format of the table with what the model takes in it; nothing for models that are no networks of known size."""
    if not shape.parameters:
        return []
    return [
        {
            "name": form.name,
            "title": form.title,
            "nominal_bits": form.nominal,
            "bits_per_weight": form.bits,
            "nominal_bytes": form.nominal_bytes(shape),
            "bytes": form.weight_bytes(shape),
            "engines": list(form.engines),
            "cost": form.cost,
            "cost_zh": form.cost_zh,
            "detail": form.detail,
            "source": form.source,
        }
        for form in quantizations().values()
    ]


def ceiling_figures(work: Workload, roofs: Roofs, context: int, sequences: int) -> dict[str, Any]:
    """Tokens per second, nothing of it rounded down."""
    return {
        "origin": roofs.origin,
        "bandwidth_bytes_per_second": roofs.bandwidth,
        "flops_per_second": roofs.flops,
        "decode_tokens_per_second_alone": decode_ceiling(work, roofs, 1, 1),
        "decode_tokens_per_second_full_context": decode_ceiling(work, roofs, context, 1),
        "decode_tokens_per_second_all": decode_ceiling(work, roofs, 1, sequences),
        "decode_tokens_per_second_all_full_context": decode_ceiling(work, roofs, context, sequences),
        "prefill_tokens_per_second": prefill_ceiling(work, roofs, 1),
        "prefill_tokens_per_second_full_context": prefill_ceiling(work, roofs, context),
        "seconds_to_first_token_full_context": context / prefill_ceiling(work, roofs, context),
        "sequences_until_arithmetic_bounds": knee(work, roofs),
    }


def cache_figures(deployment: Deployment, context: int) -> dict[str, int]:
    """Of one token while no window is full, and of one sequence."""
    return {
        "kv_bytes_per_token": round(deployment.shape.numbers_per_token(deployment.ranks) * deployment.cache_number_bytes),
        "kv_bytes_per_sequence": deployment.cache_bytes(context, 1) - deployment.cache_bytes(context, 0),
        "state_bytes_per_sequence": round(deployment.shape.state_numbers / deployment.ranks * deployment.cache_number_bytes),
    }
