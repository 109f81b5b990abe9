"""Head: hidden states of some tokens -> logits, in float32."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import torch
from torch.nn import functional

from headway.errors import ArtifactError
from headway.quantization.weight_reader import WeightReader
from headway.runtime.tasks.backbones import HeadNames

ACTIVATIONS: Final[Mapping[str, Callable[[torch.Tensor], torch.Tensor]]] = {
    "tanh": torch.tanh, "relu": torch.relu, "gelu": functional.gelu, "silu": functional.silu,
}  # fmt: skip


class Head:
    """dense -> activation -> norm -> out, of which dense and norm may be missing."""

    def __init__(
        self,
        out: tuple[torch.Tensor, torch.Tensor | None],
        dense: tuple[torch.Tensor, torch.Tensor | None] | None = None,
        activation: str | None = None,
        norm: tuple[torch.Tensor, torch.Tensor | None, float] | None = None,
    ):
        self._out = out
        self._dense = dense
        self._activation = ACTIVATIONS[activation] if activation is not None else None
        self._norm = norm

    @property
    def labels(self) -> int:
        return int(self._out[0].shape[0])

    @property
    def parameters(self) -> int:
        pairs = [self._out, *([self._dense] if self._dense else []), *([self._norm[:2]] if self._norm else [])]
        return sum(t.numel() for pair in pairs for t in pair if t is not None)

    def __call__(self, hidden: torch.Tensor) -> torch.Tensor:
        """[N, hidden] in any dtype -> [N, labels] float32."""
        x = hidden.float()
        if self._dense is not None:
            x = functional.linear(x, *self._dense)
        if self._activation is not None:
            x = self._activation(x)
        if self._norm is not None:
            weight, bias, epsilon = self._norm
            x = functional.layer_norm(x, (x.shape[-1],), weight, bias, epsilon)
        return functional.linear(x, *self._out)


def load_head(reader: WeightReader, present: Mapping[str, Any], names: HeadNames, prefix: str, config: Mapping[str, Any]) -> Head:
    """The head of a classifier. `present` are the tensors of the package, `prefix` what those of the encoder begin with.

    Raises ArtifactError (`missing_tensor`, `invalid_model_config`).
    """
    activation = names.activation
    if names.activation_field is not None:
        activation = config.get(names.activation_field, activation)
    if activation is not None and activation not in ACTIVATIONS:
        raise ArtifactError(f"config.json: {names.activation_field} is {activation!r:.40}, known are {', '.join(ACTIVATIONS)}",
                            reason="invalid_model_config", param=names.activation_field)  # fmt: skip
    norm = None
    if names.norm is not None:
        weight, bias = _linear(reader, present, names.norm.format(prefix=prefix))
        norm = (weight, bias, float(config.get("norm_eps", 1e-5)))
    dense = _linear(reader, present, names.dense.format(prefix=prefix)) if names.dense is not None else None
    return Head(_linear(reader, present, names.out), dense, activation, norm)


def _linear(reader: WeightReader, present: Mapping[str, Any], name: str) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Weight, and bias if there is one."""
    weight = reader.tensor(f"{name}.weight", torch.float32)
    return weight, reader.tensor(f"{name}.bias", torch.float32) if f"{name}.bias" in present else None
