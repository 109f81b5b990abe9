"""The questions asked backwards: which models run on a card, which cards run a model. Both ask the same question forwards."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from headway.capacity.ceilings import decode_ceiling
from headway.capacity.device_table import Device
from headway.capacity.model_shape import ModelShape
from headway.capacity.on_device import Placement, device_roofs, device_workload, on_device, vllm_formats
from headway.capacity.tensor_split import divisors, split_obstacle


@dataclass(frozen=True, slots=True)
class Wanted:
    """What must fit: `sequences` at once of `context` tokens each (cut to the model's own), on at most `most_ranks` devices."""

    context: int
    sequences: int
    most_ranks: int = 1


@dataclass(frozen=True, slots=True)
class Match:
    """A model on a device in the first format that fits, on the fewest devices. `decode` is the ceiling for one sequence at the wanted
    context, tokens per second."""

    shape: ModelShape
    device: Device
    placement: Placement
    bytes_per_device: int
    largest_context: int
    largest_concurrency: int
    decode: float


def fits_on(shape: ModelShape, device: Device, placement: Placement, wanted: Wanted) -> bool:
    """The forward question, the one that everything here asks."""
    if split_obstacle(shape, placement.ranks) is not None:
        return False
    return on_device(shape, device, placement).fits(_context(shape, wanted), wanted.sequences)


def best_match(shape: ModelShape, device: Device, base: Placement, wanted: Wanted) -> Match | None:
    """The most accurate format on one device before any on two; a checkpoint that is quantized stays what it is. None = nothing fits."""
    stored = shape.quantization is not None and shape.stored_bytes is not None
    formats = (None,) if stored or base.quantization is not None else vllm_formats(device)
    for ranks in divisors(shape.heads, wanted.most_ranks):
        for form in formats:
            placement = replace(base, ranks=ranks, quantization=base.quantization if form is None else form)
            if fits_on(shape, device, placement, wanted):
                return _match(shape, device, placement, wanted)
    return None


def models_for(device: Device, shapes: Iterable[ModelShape], base: Placement, wanted: Wanted) -> list[Match]:
    """What runs on this card, in the order given."""
    return [match for shape in shapes if (match := best_match(shape, device, base, wanted)) is not None]


def devices_for(shape: ModelShape, devices: Iterable[Device], base: Placement, wanted: Wanted) -> list[Match]:
    """Which cards run this model, in the order given."""
    return [match for device in devices if (match := best_match(shape, device, base, wanted)) is not None]


def _match(shape: ModelShape, device: Device, placement: Placement, wanted: Wanted) -> Match:
    deployment, context = on_device(shape, device, placement), _context(shape, wanted)
    return Match(
        shape, device, placement, deployment.need(context, wanted.sequences).total, deployment.largest_context(wanted.sequences),
        deployment.largest_concurrency(context), decode_ceiling(device_workload(shape, placement), device_roofs(device, placement), context, 1),
    )  # fmt: skip


def _context(shape: ModelShape, wanted: Wanted) -> int:
    return min(wanted.context, shape.context_length or wanted.context)
