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
    """A causal LM of transformers, with its own default attention. `reference` may be anything that `resolve` knows."""

    def __init__(self, reference: str, dtype: torch.dtype):
        path = Path(resolve(reference))
        self.model = (_from_gguf if path.suffix == ".gguf" else _from_folder)(path, dtype).eval()

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


def _from_folder(path: Path, dtype: torch.dtype) -> Any:
    from transformers import AutoModelForCausalLM

    return AutoModelForCausalLM.from_pretrained(str(path), dtype=dtype, local_files_only=True)


def _from_gguf(path: Path, dtype: torch.dtype) -> Any:
    """Expanded by transformers' own reader. By hand, since `from_pretrained(gguf_file=...)` asks for accelerate without
    using it. Raises ConfigError when the package gguf is missing or tensors are."""
    try:
        import gguf  # noqa: F401  transformers needs it and says so less clearly
    except ImportError as error:
        raise ConfigError(f"transformers cannot read {path.name} without the package gguf", fix="`pip install gguf`") from error
    from transformers import AutoConfig, AutoModelForCausalLM
    from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

    config = AutoConfig.from_pretrained(str(path.parent), gguf_file=path.name)
    model = AutoModelForCausalLM.from_config(config, dtype=dtype)
    tensors = load_gguf_checkpoint(str(path), return_tensors=True, model_to_load=model)["tensors"]
    missing = set(model.load_state_dict(tensors, strict=False).missing_keys)
    if config.tie_word_embeddings:
        missing.discard("lm_head.weight")
    if missing:
        raise ConfigError(f"transformers finds no weights for {', '.join(sorted(missing)[:3])} in {path.name}")
    model.tie_weights()
    return model
