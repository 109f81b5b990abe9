"""`headway plan --device CARD` and `headway plan MODEL --which-device`: the reverse questions as JSON-ready objects."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from headway.capacity.device_table import Device, devices
from headway.capacity.model_shape import ModelShape
from headway.capacity.model_table import known_models
from headway.capacity.reverse import Match, Wanted, devices_for, models_for
from headway.cli.plan_question import Question
from headway.cli.plan_words import Language, said
from headway.errors import ConfigError

USUAL_CONTEXT: Final = 4096
_MOST_CARDS: Final = 8


def models_answer(device: Device, asked: Question, language: Language) -> dict[str, Any]:
    """What runs on this card, over the table of common models and those of the registry."""
    wanted = Wanted(asked.context or USUAL_CONTEXT, asked.sequences or 1, asked.ranks or 1)
    shapes = [model.shape for model in known_models().values()]
    matches = models_for(device, shapes, replace(asked.placement, ranks=1), wanted)
    words = {"count": len(matches), "all": len(shapes), "ranks": wanted.most_ranks, "device": device.name, "context": wanted.context}
    found = {match.shape.name for match in matches}
    return {
        "device": {"name": device.name, "title": device.title, "memory_bytes": device.memory_bytes, "count": wanted.most_ranks},
        "max_model_len": wanted.context,
        "concurrency": wanted.sequences,
        "verdict": said(language, "runs", **words),
        "models": [match_figures(match) | {"reference": known_models()[match.shape.name].reference} for match in matches],
        "too_large": [shape.name for shape in shapes if shape.name not in found],
    }


def devices_answer(shape: ModelShape, asked: Question, language: Language) -> dict[str, Any]:
    """Which cards run this model, fewest of each."""
    if shape.kind == "table":
        raise ConfigError(f"{shape.name} runs on CPUs only: it is no network for a GPU", param="which_device", fix="Leave --which-device out.")
    wanted = Wanted(min(asked.context or USUAL_CONTEXT, shape.context_length or USUAL_CONTEXT), asked.sequences or 1, asked.ranks or _MOST_CARDS)
    matches = devices_for(shape, devices().values(), replace(asked.placement, ranks=1), wanted)
    words = {"count": len(matches), "all": len(devices()), "ranks": wanted.most_ranks, "context": wanted.context}
    found = {match.device.name for match in matches}
    return {
        "model": {"name": shape.name, "parameters": shape.parameters, "context_length": shape.context_length},
        "max_model_len": wanted.context,
        "concurrency": wanted.sequences,
        "verdict": said(language, "devices", **words),
        "devices": [match_figures(match) for match in matches],
        "too_small": [name for name in devices() if name not in found],
        "notes": list(shape.notes),
    }


def match_figures(match: Match) -> dict[str, Any]:
    """One line of either answer."""
    form = match.placement.quantization
    return {
        "model": match.shape.name,
        "parameters": match.shape.parameters,
        "device": match.device.name,
        "count": match.placement.ranks,
        "format": form.name if form is not None else match.shape.quantization or "bf16",
        "bytes_per_device": match.bytes_per_device,
        "memory_bytes": match.device.memory_bytes,
        "largest_context": match.largest_context,
        "largest_concurrency": match.largest_concurrency,
        "decode_tokens_per_second": match.decode,
    }
