"""Names in configs mean what transformers means by them."""

from __future__ import annotations

import pytest
import torch
from transformers.activations import ACT2FN

from headway.kernels.torch_backend import TORCH
from headway.models.hf_fields import ACTIVATIONS, GATES

X = torch.linspace(-6, 6, 1_001)[None]


@pytest.mark.parametrize("name", list(ACTIVATIONS))
def test_activations(name: str) -> None:
    torch.testing.assert_close(TORCH.activations[ACTIVATIONS[name]](X), ACT2FN[name](X), atol=2e-6, rtol=1e-6)


@pytest.mark.parametrize("name", list(GATES))
def test_gates(name: str) -> None:
    gate = {"silu": TORCH.silu_gate, "gelu_tanh": TORCH.gelu_tanh_gate}[GATES[name]]
    torch.testing.assert_close(gate(torch.cat((X, X.flip(1)), -1)), ACT2FN[name](X) * X.flip(1), atol=1e-5, rtol=1e-6)
