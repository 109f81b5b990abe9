"""A feed-forward part of many experts, of which every token uses a few."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from headway.kernels.interface import Activation, Kernels
from headway.layers.gated_mlp import gate_kernel
from headway.layers.linear import Linear


@dataclass(frozen=True, slots=True)
class Routing:
    """`chosen` of `experts` work on each token. `renormalized`: the weights of the chosen ones are made to add up to 1."""

    experts: int
    chosen: int
    renormalized: bool


class Expert:
    """down(act(gate(x)) * up(x))."""

    __slots__ = ("_gate", "down", "gate_up")

    def __init__(self, kernels: Kernels, activation: Activation):
        self.gate_up = Linear(kernels)
        self.down = Linear(kernels)
        self._gate = gate_kernel(kernels, activation)

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        """[N, hidden] -> [N, hidden]."""
        return self.down(self._gate(self.gate_up(x)))


class MixtureOfExperts:
    """residual + the chosen experts of every token, each times its probability (softmax over all experts).

    Tokens are sorted by expert, so a step runs each active expert once, over all of its tokens, and the others not at
    all. Every token adds its experts up in the order of their numbers, in float32, whatever else is in the batch.
    """

    __slots__ = ("_routing", "experts", "router")

    def __init__(self, kernels: Kernels, activation: Activation, routing: Routing):
        self._routing = routing
        self.router = Linear(kernels)
        self.experts = [Expert(kernels, activation) for _ in range(routing.experts)]

    def __call__(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        """x (normalised) and residual [T, hidden] -> the new residual."""
        weights, chosen = torch.softmax(self.router(x), -1, dtype=torch.float32).topk(self._routing.chosen)
        if self._routing.renormalized:
            weights = weights / weights.sum(-1, keepdim=True)
        order = chosen.flatten().argsort(stable=True)
        tokens, shares = order // self._routing.chosen, weights.flatten()[order][:, None]
        total = torch.zeros(x.shape, dtype=torch.float32, device=x.device)
        counts = chosen.flatten().bincount(minlength=self._routing.experts).tolist()
        begin = 0
        for expert, count in zip(self.experts, counts, strict=True):
            if count:
                mine = slice(begin, begin + count)
                total.index_add_(0, tokens[mine], expert(x.index_select(0, tokens[mine])) * shares[mine])
                begin += count
        return (residual + total).to(residual.dtype)
