"""Over how many devices the layers of a model can be split, and what each of them then needs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from headway.capacity.device_table import Device
from headway.capacity.model_shape import ModelShape
from headway.capacity.on_device import Placement, on_device

USUAL_MOST: Final = 8


@dataclass(frozen=True, slots=True)
class TensorSplit:
    """`ranks` divides the attention heads. `obstacle`: what keeps it from running all the same, None when nothing does."""

    ranks: int
    obstacle: str | None
    bytes_per_device: int
    fits: bool
    largest_context: int


def split_obstacle(shape: ModelShape, ranks: int) -> str | None:
    """Why `ranks` devices cannot share the model, or None. The size must divide the attention heads (it need not be a power of
    two); key heads are divided, or repeated a whole number of times."""
    if ranks == 1:
        return None
    if shape.heads % ranks:
        return f"attention heads ({shape.heads}) must be divisible by tensor parallel size ({ranks})"
    if shape.kv_heads and shape.kv_heads % ranks and ranks % shape.kv_heads:
        return f"{shape.kv_heads} key-value heads can neither be divided among {ranks} devices nor repeated on them evenly"
    return None


def divisors(heads: int, most: int = USUAL_MOST) -> tuple[int, ...]:
    """Sizes up to `most` that divide the heads: 1, 2, 5, 7, ..., not only powers of two."""
    return tuple(ranks for ranks in range(1, most + 1) if heads and heads % ranks == 0) or (1,)


def tensor_splits(shape: ModelShape, device: Device, placement: Placement, context: int, sequences: int, most: int = USUAL_MOST) -> list[TensorSplit]:
    """One row for every divisor, whether or not it fits."""
    rows = []
    for ranks in divisors(shape.heads, most):
        deployment = on_device(shape, device, replace(placement, ranks=ranks))
        obstacle = split_obstacle(shape, ranks)
        rows.append(
            TensorSplit(
                ranks, obstacle, deployment.need(context, sequences).total, obstacle is None and deployment.fits(context, sequences),
                0 if obstacle else deployment.largest_context(sequences),
            )
        )  # fmt: skip
    return rows
