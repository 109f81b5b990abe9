"""transformers' own `generate` on the same weights, in static batches: the comparison everybody can repeat."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from headway.artifacts.resolve import resolve
from headway.bench.offline import Throughput
from headway.bench.prompts import Prompt
from headway.errors import ConfigError


class TransformersModel:
    """A causal LM of transformers. GGUF weights are expanded by transformers' own reader (needs the package gguf)."""

    def __init__(self, reference: str, dtype: torch.dtype):
        from transformers import AutoModelForCausalLM, GgufConfig

        path = Path(resolve(reference))
        where: dict[str, Any] = {"pretrained_model_name_or_path": str(path)}
        if path.suffix == ".gguf":
            where = {
                "pretrained_model_name_or_path": str(path.parent),
                "gguf_file": path.name,
                "quantization_config": GgufConfig(dequantize=True),
            }
        try:
            self.model = AutoModelForCausalLM.from_pretrained(dtype=dtype, local_files_only=True, **where).eval()
        except ImportError as error:
            raise ConfigError(f"transformers cannot read {path.name}: {error}", fix="`pip install gguf`") from error

    def generate(self, prompts: Sequence[Prompt], batch_size: int) -> Throughput:
        """Greedy generation of batches in the order given; each batch runs to its longest output.

        Shorter prompts are padded on the left. Only the tokens that were asked for are counted.
        """
        start = time.perf_counter()
        for first in range(0, len(prompts), batch_size):
            self._batch(prompts[first : first + batch_size])
        elapsed = time.perf_counter() - start
        return Throughput(elapsed, len(prompts), sum(len(p.token_ids) for p in prompts), sum(p.output_len for p in prompts))

    def _batch(self, prompts: Sequence[Prompt]) -> None:
        width = max(len(p.token_ids) for p in prompts)
        longest = max(p.output_len for p in prompts)
        ids = torch.zeros((len(prompts), width), dtype=torch.int64)
        mask = torch.zeros_like(ids)
        for row, prompt in enumerate(prompts):
            ids[row, width - len(prompt.token_ids) :] = torch.tensor(prompt.token_ids)
            mask[row, width - len(prompt.token_ids) :] = 1
        with torch.inference_mode():
            out = self.model.generate(
                ids, attention_mask=mask, max_new_tokens=longest, min_new_tokens=longest, do_sample=False, pad_token_id=0
            )
        if out.shape[1] != width + longest:
            raise ConfigError(f"transformers generated {out.shape[1] - width} tokens where {longest} were asked for")
