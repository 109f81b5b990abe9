"""Step times of a replica that was only planned: what `headway plan --cluster` reckons, for the simulator."""

from __future__ import annotations

from typing import Any, Final

from headway.bench.simulation.step_times import Curve, StepTimes
from headway.capacity.cluster.choice import ROWS, STEP_TOKENS, Reached
from headway.capacity.cluster.step_cost import Replica
from headway.errors import NotBuiltError

BLOCK_SIZE: Final = 16


def reckoned_times(replica: Replica, reached: Reached) -> StepTimes:
    """Of one replica. Raises NotBuiltError for several stages: the simulator's replicas compute one batch at a time."""
    if reached.layout.pp > 1:
        raise NotBuiltError(
            f"step times of {reached.layout.pp} pipeline stages: the simulation has one batch under way in a replica", param="save_step_times",
            fix="No layout with one stage fits; fit the times to records of the engine.",
        )  # fmt: skip
    knots = (0, *(1 << power for power in range(STEP_TOKENS.bit_length())))
    nothing = replica.step(1, 0.0, 0.0, 0).seconds
    by_tokens = [nothing, *(replica.step(tokens, 0.0, 0.0, 0).seconds for tokens in knots[1:])]
    rows = tuple(knot for knot in knots if knot <= ROWS)
    by_sampled = [0.0, *(max(0.0, replica.step(count, 0.0, 0.0, count).seconds - replica.step(count, 0.0, 0.0, 0).seconds) for count in rows[1:])]
    few, many = replica.step(1, 0.0, 0.0, 0), replica.step(1, 1e9, 0.0, 0)
    device = replica.cluster.device
    attention = 4.0 * replica.shape.heads * replica.shape.head_dim * sum(layer.count for layer in replica.shape.kv) * replica.share
    memory = reached.memory
    per_block = memory.sequence * BLOCK_SIZE / max(1, reached.context)
    blocks = int((memory.budget - memory.weights - memory.fixed) / per_block) if per_block else 1 << 20
    origin: dict[str, Any] = {"planned": replica.shape.name, "tensor_parallel_size": reached.layout.tp, "num_blocks": blocks, "block_size": BLOCK_SIZE}
    return StepTimes(
        Curve(knots, _rising(by_tokens)), Curve(rows, _rising(by_sampled)), pair=attention / device.flops, context=(many.seconds - few.seconds) / 1e9, origin=origin
    )


def _rising(seconds: list[float]) -> tuple[float, ...]:
    """Rounding and the change from tree to ring may make a larger step look shorter by a hair."""
    for i in range(1, len(seconds)):
        seconds[i] = max(seconds[i], seconds[i - 1])
    return tuple(seconds)
