"""The output head of a transformers model, for hidden states that are already there.

Between the last hidden states and the logits lies more than a matrix in some models: multipliers, soft caps, norms. All
of it is in the model's own forward, so that is what runs, with the decoder replaced by one that returns what it is given.
"""

from __future__ import annotations

import copy
from typing import Any

import torch


def decoder_of(model: Any) -> Any:
    """The module that turns tokens into hidden states."""
    found = model.get_decoder()
    # Some models call their output matrix "decoder".
    return model.base_model if isinstance(found, torch.nn.Linear) else found


def head_of(model: Any) -> FallbackHead:
    """Raises ValueError, or whatever the model raises, when its head does not run by itself."""
    matrix = model.get_output_embeddings()
    if not isinstance(matrix, torch.nn.Linear):
        raise ValueError("its output head is no matrix")
    trial = torch.zeros(1, matrix.in_features, dtype=matrix.weight.dtype, device=matrix.weight.device)
    failures: list[Exception] = []
    for inside in (model.base_model, decoder_of(model)):  # the head's input is what one or the other returns
        try:
            head = FallbackHead(model, inside)
            head(trial)
            return head
        except Exception as error:  # code of many authors: anything may be raised
            failures.append(error)
    raise failures[-1]


class _Given(torch.nn.Module):
    """Stands in for the decoder."""

    def __init__(self) -> None:
        super().__init__()
        self.hidden: torch.Tensor | None = None

    def forward(self, *_: Any, **__: Any) -> _Output:
        assert self.hidden is not None
        return _Output(self.hidden)


class _Output:
    """Output of a decoder: the last hidden states, first or by name; whatever else is asked for is not there."""

    def __init__(self, hidden: torch.Tensor):
        self.last_hidden_state = hidden

    def __getitem__(self, index: int) -> torch.Tensor:
        return (self.last_hidden_state,)[index]

    def __getattr__(self, name: str) -> None:
        if name.startswith("__"):
            raise AttributeError(name)


class FallbackHead:
    """`head(hidden [N, hidden]) -> float32 [N, vocabulary]`. Shares all weights with the model."""

    def __init__(self, model: torch.nn.Module, inside: torch.nn.Module):
        """`inside` is the part that makes the hidden states. Raises ValueError when it is no part of `model`."""
        path = next((name for name, module in model.named_modules() if module is inside and name), None)
        if path is None:
            raise ValueError("the decoder is the model itself")
        self._given = _Given()
        self._model = _with(model, path.split("."), self._given)

    def __call__(self, hidden: torch.Tensor) -> torch.Tensor:
        self._given.hidden = hidden[None]
        tokens = torch.zeros(1, hidden.shape[0], dtype=torch.int64, device=hidden.device)
        try:
            logits: torch.Tensor = self._model(input_ids=tokens, position_ids=tokens, use_cache=False).logits
        finally:
            self._given.hidden = None
        return logits[0].float()


def _with(module: torch.nn.Module, path: list[str], replacement: torch.nn.Module) -> torch.nn.Module:
    """A shallow copy of `module` in which the module at `path` is another; everything else is shared."""
    twin = copy.copy(module)
    twin._modules = dict(module._modules)
    below = module._modules[path[0]]
    assert below is not None
    twin._modules[path[0]] = replacement if len(path) == 1 else _with(below, path[1:], replacement)
    return twin
