"""Training of small heads on frozen features, in seconds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F


@dataclass(frozen=True, slots=True)
class States:
    """Features of one example: ends of the options [options, hidden], the end of the prompt [hidden], the right option."""

    ends: torch.Tensor
    last: torch.Tensor
    label: int


def random_tensors(shapes: Mapping[str, tuple[int, ...]], seed: int) -> dict[str, torch.Tensor]:
    """Start of training: weights around 0, norms at 1, biases at 0."""
    chance = torch.Generator().manual_seed(seed)
    made = {}
    for name, shape in shapes.items():
        if name.endswith("norm.weight"):
            made[name] = torch.ones(shape)
        elif name.endswith("bias"):
            made[name] = torch.zeros(shape)
        else:
            made[name] = torch.randn(shape, generator=chance) / shape[-1] ** 0.5
    return made


def fit(
    tensors: Mapping[str, torch.Tensor], logits: Callable[[Mapping[str, torch.Tensor], torch.Tensor, torch.Tensor], torch.Tensor], examples: Sequence[States],
    *, steps: int, rate: float, decay: float,
) -> dict[str, torch.Tensor]:  # fmt: skip
    """Cross-entropy over all examples at once, which have equally many options. `logits` of tensors, ends and last of one example."""
    trained = {name: tensor.clone().requires_grad_() for name, tensor in tensors.items()}
    optimizer = torch.optim.AdamW(list(trained.values()), lr=rate, weight_decay=decay)
    ends, last = torch.stack([each.ends for each in examples]), torch.stack([each.last for each in examples])
    labels = torch.tensor([each.label for each in examples])
    for _ in range(steps):
        loss = F.cross_entropy(torch.vmap(lambda e, at: logits(trained, e, at))(ends, last), labels)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    return {name: tensor.detach() for name, tensor in trained.items()}


@dataclass(frozen=True, slots=True)
class Scale:
    """Mean and spread of features, so that training sees numbers of one size; folded into a linear map afterwards."""

    mean: torch.Tensor
    spread: torch.Tensor

    def __call__(self, states: torch.Tensor) -> torch.Tensor:
        return (states - self.mean) / self.spread

    def folded(self, weight: torch.Tensor, bias: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """The same map of unscaled features."""
        return weight / self.spread, bias - (weight / self.spread) @ self.mean


def scale_of(states: torch.Tensor) -> Scale:
    """states [examples, hidden]"""
    return Scale(states.mean(0), states.std(0).clamp_min(1e-3))
