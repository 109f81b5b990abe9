"""Adapters with random weights, made and saved by PEFT, which is also the oracle for what they compute."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, get_peft_model


@dataclass(frozen=True)
class PeftAdapter:
    """A folder and the model of transformers with the adapter in it."""

    folder: Path
    model: Any

    def logits(self, tokens: list[int]) -> torch.Tensor:
        """[T, vocabulary]."""
        with torch.no_grad():
            return self.model(input_ids=torch.tensor([tokens]), use_cache=False).logits[0]

    def greedy(self, tokens: list[int], count: int, never: Sequence[int] = ()) -> list[int]:
        """`never` are no choice."""
        with torch.no_grad():
            out = self.model.generate(
                input_ids=torch.tensor([tokens]), max_new_tokens=count, min_new_tokens=count, do_sample=False,
                suppress_tokens=list(never) or None,
            )
        return out[0, len(tokens) :].tolist()


def make_adapter(base: Any, folder: Path, *, seed: int, rank: int = 4, **config: Any) -> PeftAdapter:
    """Of all linear layers but the head unless `config`, settings of LoraConfig, says otherwise. `base` is copied. Factors are large enough
    to change every answer."""
    settings = LoraConfig(**({"r": rank, "lora_alpha": rank + 3, "target_modules": "all-linear", "task_type": "CAUSAL_LM"} | config))
    model = get_peft_model(copy.deepcopy(base), settings).eval()
    generator = torch.Generator().manual_seed(seed)
    for name, weight in model.named_parameters():
        if ".lora_" in name:
            weight.data = torch.randn(weight.shape, generator=generator) * (0.7 / weight.shape[-1] ** 0.5)
    model.save_pretrained(folder)
    return PeftAdapter(folder, model)
