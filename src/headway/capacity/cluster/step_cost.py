"""What one stage of a replica takes for a step, term by term."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headway.capacity.cluster.description import Cluster
from headway.capacity.cluster.layout import Layout
from headway.capacity.model_shape import ModelShape
from headway.capacity.on_device import Placement, placed_weights

_LOGIT_BYTES = 4


@dataclass(frozen=True, slots=True)
class Term:
    """`arithmetic` is the sum in words and figures; `counted`: it is part of the sum, and not the smaller of two that overlap."""

    name: str
    arithmetic: str
    seconds: float
    counted: bool = True


@dataclass(frozen=True, slots=True)
class StepCost:
    """Of the fullest stage."""

    terms: tuple[Term, ...]

    @property
    def seconds(self) -> float:
        return sum(term.seconds for term in self.terms if term.counted)


@dataclass(frozen=True, slots=True)
class Replica:
    """A model as one layout has it on a cluster."""

    shape: ModelShape
    cluster: Cluster
    layout: Layout
    placement: Placement

    @property
    def share(self) -> float:
        """Of the layers, those of the fullest stage, on each of its devices."""
        return self.layout.stage_layers(self.shape) / max(1, self.shape.layers) / self.layout.tp

    def step(self, tokens: int, cached: float, pairs: float, sampled: int) -> StepCost:
        """`tokens` go through the layers, `cached` earlier tokens are read by decoding rows (over the rows), `pairs` of query and key are
        multiplied, `sampled` rows go through the head."""
        terms = [*self._compute(tokens, cached, pairs, sampled), *self._communicate(tokens, sampled)]
        if self.cluster.device.overhead:
            terms.append(Term("overhead", "per step, as measured", self.cluster.device.overhead))
        return StepCost(tuple(terms))

    def _compute(self, tokens: int, cached: float, pairs: float, sampled: int) -> Sequence[Term]:
        """Reading and multiplying overlap: the longer counts."""
        shape, device = self.shape, self.cluster.device
        bytes_each = placed_weights(shape, self.placement) / max(1, shape.parameters)
        head = shape.head or (shape.vocabulary * shape.hidden if shape.tied else 0)
        inner = max(1, shape.active - head)
        weights = (inner * self.share + head / self.layout.tp) * bytes_each
        cache = cached * shape.numbers_per_token(self.layout.tp) * self.share * self.layout.tp * self.placement.cache_number_bytes
        reading = (weights + cache) / device.bandwidth
        operations = 2.0 * inner * tokens * self.share + 2.0 * head * sampled / self.layout.tp
        attention = 4.0 * pairs * shape.heads * shape.head_dim * sum(layer.count for layer in shape.kv) * self.share
        multiplying = (operations + attention) / device.flops
        longer = reading >= multiplying
        return (
            Term("read", f"({weights / 1e9:.3f} GB weights + {cache / 1e9:.3f} GB keys and values) / {device.bandwidth / 1e9:,.0f} GB/s", reading, longer),
            Term("multiply", f"({operations / 1e12:.4f} + {attention / 1e12:.4f} attention) TFLOP / {device.flops / 1e12:,.1f} TFLOP/s", multiplying, not longer),
        )

    def _communicate(self, tokens: int, sampled: int) -> Sequence[Term]:
        shape, layout = self.shape, self.layout
        nbytes = tokens * shape.hidden * self.placement.dtype_bytes
        terms = []
        if layout.tp > 1:
            link = self.cluster.link(layout.tp)
            once, algorithm = link.all_reduce_seconds(nbytes, layout.tp)
            count = 2 * layout.stage_layers(shape)
            terms.append(Term(
                "all-reduce", f"{count} x {algorithm} of {nbytes / 1e6:.3f} MB over {layout.tp}, {link.latency * 1e6:.1f} us and {link.bandwidth / 1e9:.1f} GB/s: {once * 1e6:.1f} us each",
                count * once,
            ))  # fmt: skip
            if sampled:
                logits = sampled * shape.vocabulary * _LOGIT_BYTES
                terms.append(Term("gather logits", f"{logits / 1e6:.3f} MB over {layout.tp}", link.all_gather(logits, layout.tp)))
        if layout.pp > 1:
            link = self.cluster.link(layout.tp * layout.pp)
            terms.append(Term("send", f"{nbytes / 1e6:.3f} MB to the next stage, {link.latency * 1e6:.1f} us and {link.bandwidth / 1e9:.1f} GB/s", link.send(nbytes)))
        return terms
