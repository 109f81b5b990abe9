"""Layout: how many devices share a layer (tp), how many groups of them follow one another (pp), how many such replicas there are (dp)."""

from __future__ import annotations

from dataclasses import dataclass

from headway.capacity.activations import VLLM, Step, activation_bytes
from headway.capacity.cluster.description import Cluster
from headway.capacity.deployment import CONTEXT_BYTES
from headway.capacity.model_shape import ModelShape
from headway.capacity.on_device import Placement, placed_weights
from headway.capacity.tensor_split import USUAL_MOST, split_obstacle


@dataclass(frozen=True, slots=True)
class Layout:
    """`tp` x `pp` devices hold the model once, `dp` times over."""

    tp: int
    pp: int
    dp: int

    def stage_layers(self, shape: ModelShape) -> int:
        """Of the stage that has most."""
        return -(-shape.layers // self.pp)


def layouts(cluster: Cluster, shape: ModelShape) -> list[Layout]:
    """All that use the cluster as far as whole replicas do. A tensor parallel group lies in one node or covers whole nodes; so does a replica.
    Small sizes that do not divide the heads are listed too, so that a plan can say why they fail."""
    found = []
    for tp in range(1, min(cluster.total, max(shape.heads, 1)) + 1):
        if not _tiles(tp, cluster.devices) or (tp > USUAL_MOST and shape.heads % tp):
            continue
        for pp in range(1, min(cluster.total // tp, max(shape.layers, 1)) + 1):
            if dp := _replicas(cluster, tp * pp):
                found.append(Layout(tp, pp, dp))
    return found


def _tiles(ranks: int, devices: int) -> bool:
    return ranks <= devices or ranks % devices == 0


def _replicas(cluster: Cluster, ranks: int) -> int:
    """Replicas of `ranks` devices, none of which shares a node with part of another beyond whole nodes of its own."""
    if ranks <= cluster.devices:
        return cluster.nodes * (cluster.devices // ranks)
    return cluster.nodes // -(-ranks // cluster.devices)


@dataclass(frozen=True, slots=True)
class RankMemory:
    """Bytes on one device of the fullest stage. `sequence`: keys and values of one sequence of the planned length."""

    weights: int
    sequence: int
    fixed: int  # activations and the process
    budget: int

    @property
    def sequences(self) -> int:
        """That fit at once; 0 when the weights alone do not."""
        left = self.budget - self.weights - self.fixed
        return max(0, left // self.sequence) if self.sequence else (1 << 20 if left >= 0 else 0)


def rank_memory(shape: ModelShape, layout: Layout, placement: Placement, memory: int, context: int, step_tokens: int, rows: int) -> RankMemory:
    """Layers and their cache are divided over stages and ranks; the larger of input table and head stands with the fullest stage."""
    share = layout.stage_layers(shape) / max(1, shape.layers)
    bits = placed_weights(shape, placement) / max(1, shape.parameters)  # bytes per parameter, on average
    inner = (shape.parameters - shape.embeddings - shape.head) * bits * share
    tables = shape.embeddings + shape.head if layout.pp == 1 else max(shape.embeddings, shape.head)
    return RankMemory(
        weights=int((inner + tables * bits) / layout.tp),
        sequence=int(shape.cache_numbers(context, layout.tp) * share * placement.cache_number_bytes),
        fixed=activation_bytes(shape, Step(step_tokens, rows, context), placement.dtype_bytes, VLLM, layout.tp) + CONTEXT_BYTES,
        budget=int(memory * placement.utilization),
    )


def obstacle(shape: ModelShape, layout: Layout) -> str | None:
    """Why the model cannot be split so, whatever memory there is."""
    if layout.pp > shape.layers:
        return f"{shape.layers} layers make at most as many stages, not {layout.pp}"
    return split_obstacle(shape, layout.tp)
