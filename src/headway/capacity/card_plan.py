"""A plan for a card under vLLM: what fits, and what to change when it does not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from headway.capacity.deployment import Deployment
from headway.capacity.device_table import Device
from headway.capacity.host_plan import checked_context
from headway.capacity.model_shape import ModelShape
from headway.capacity.on_device import Placement, on_device, vllm_formats
from headway.capacity.tensor_split import USUAL_MOST, divisors, split_obstacle

_WORTHWHILE: Final = 2048  # a shorter context than this is no remedy


@dataclass(frozen=True, slots=True)
class CardPlan:
    """`cache` is what is left for keys and values on each card, 0 when nothing is. `remedy` is what makes it fit: another placement,
    and the context that then fits; None when it fits as it is, or nothing helps."""

    deployment: Deployment
    placement: Placement
    fits: bool
    context: int
    sequences: int
    cache: int
    cache_tokens: int
    remedy: tuple[Placement, int] | None


def card_plan(shape: ModelShape, device: Device, placement: Placement, context: int | None, sequences: int | None, *, may_split: bool) -> CardPlan:
    """Without `context` the model's own if that fits, else the longest that does. `may_split`: a remedy may use several cards.

    Raises ConfigError for a context beyond the model's.
    """
    deployment, at_once = on_device(shape, device, placement), sequences or 1
    most = checked_context(shape, context)
    usable = split_obstacle(shape, placement.ranks) is None
    length = most
    if context is None and not deployment.fits(most, at_once):
        length = deployment.largest_context(at_once) or most
    fits = usable and deployment.fits(length, at_once)
    need = deployment.need(length, at_once)
    left = max(0, deployment.budget - (need.total - need.cache))
    per_token = round(deployment.shape.numbers_per_token(placement.ranks) * deployment.cache_number_bytes)
    remedy = None if fits else _remedy(shape, device, placement, most, at_once, may_split)
    held = deployment.largest_concurrency(length) if sequences is None and fits else at_once
    return CardPlan(deployment, placement, fits, length, max(1, held), left, left // per_token if per_token else 0, remedy)


def _remedy(shape: ModelShape, device: Device, placement: Placement, context: int, sequences: int, may_split: bool) -> tuple[Placement, int] | None:
    """In this order: a shorter context, several cards, a smaller format. Each keeps more of what was asked than the next."""
    stored = shape.quantization is not None and shape.stored_bytes is not None
    packed = [] if stored or placement.quantization is not None else [form for form in vllm_formats(device) if form.bits < 16]
    forms = (placement, *(replace(placement, quantization=form) for form in packed))
    splits = divisors(shape.heads, USUAL_MOST) if may_split else (placement.ranks,)
    for form in forms:
        for ranks in splits:
            if ranks < placement.ranks or split_obstacle(shape, ranks) is not None:
                continue
            longest = min(context, on_device(shape, device, replace(form, ranks=ranks)).largest_context(sequences))
            if longest >= min(context, _WORTHWHILE):
                return replace(form, ranks=ranks), longest
    return None
