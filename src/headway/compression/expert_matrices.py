"""Experts as matrices of their own, so that what each is fed with can be watched; transformers stacks them in two tensors."""

from __future__ import annotations

from typing import Any

import torch


class ExpertMatrices(torch.nn.Module):
    """Takes the place of transformers' experts of Mixtral and Qwen, whose forward pass it repeats expert by expert. Parameters are
    `{expert}.gate_proj.weight`, `{expert}.up_proj.weight` and `{expert}.down_proj.weight`."""

    def __init__(self, stacked: Any):
        super().__init__()
        self._activation = stacked.act_fn
        _, twice, hidden = stacked.gate_up_proj.shape
        self.count = int(stacked.gate_up_proj.shape[0])
        for expert in range(self.count):
            one = torch.nn.Module()
            for name, shape in (("gate_proj", (hidden, twice // 2)), ("up_proj", (hidden, twice // 2)), ("down_proj", (twice // 2, hidden))):
                one.add_module(name, torch.nn.Linear(*shape, bias=False, device="meta"))
            self.add_module(str(expert), one)

    def forward(self, hidden_states: torch.Tensor, top_k_index: torch.Tensor, top_k_weights: torch.Tensor) -> torch.Tensor:
        """`hidden_states` [tokens, hidden], the chosen experts and their shares [tokens, chosen] -> [tokens, hidden]."""
        total = torch.zeros_like(hidden_states)
        for expert in range(self.count):
            token, place = torch.where(top_k_index == expert)
            if not len(token):
                continue
            one: Any = self.get_submodule(str(expert))
            inputs = hidden_states[token]
            outputs = one.down_proj(self._activation(one.gate_proj(inputs)) * one.up_proj(inputs))
            total.index_add_(0, token, outputs * top_k_weights[token, place, None])
        return total
