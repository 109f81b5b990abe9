"""Tiny seeded encoders of transformers, saved as their makers save them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import torch
import transformers

SIZES: Final[dict[str, Any]] = {
    "vocab_size": 120, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4,
    "max_position_embeddings": 90, "pad_token_id": 0,
}  # fmt: skip
PADDED: Final = {**SIZES, "pad_token_id": 1, "type_vocab_size": 1}
DISTANT: Final = {**SIZES, "relative_attention": True, "pos_att_type": ["p2c", "c2p"]}
MODERN: Final = {**SIZES, "num_hidden_layers": 5, "local_attention": 10, "max_position_embeddings": 200,
                 "bos_token_id": 1, "eos_token_id": 2, "cls_token_id": 1, "sep_token_id": 2}  # fmt: skip
YARN: Final = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 50}

# name -> class, config. Every switch of every native architecture is set in one of them.
NATIVE: Final[Mapping[str, tuple[str, dict[str, Any]]]] = {
    "bert": ("Bert", {**SIZES, "hidden_act": "gelu_new"}),
    "bert-relu": ("Bert", {**SIZES, "hidden_act": "relu", "type_vocab_size": 1}),
    "roberta": ("Roberta", {**PADDED, "type_vocab_size": 2}),
    "xlm-roberta": ("XLMRoberta", {**PADDED, "pad_token_id": 3}),
    "camembert": ("Camembert", PADDED),
    "distilbert": ("DistilBert", {"vocab_size": 120, "dim": 32, "hidden_dim": 48, "n_layers": 3, "n_heads": 4, "max_position_embeddings": 90}),
    "mpnet": ("MPNet", {**SIZES, "pad_token_id": 1, "max_position_embeddings": 200}),
    "deberta-v3": ("DebertaV2", {**DISTANT, "position_buckets": 16, "norm_rel_ebd": "layer_norm", "share_att_key": True,
                                 "position_biased_input": False, "type_vocab_size": 0, "max_position_embeddings": 60}),
    "deberta-v2": ("DebertaV2", {**DISTANT, "max_relative_positions": 24, "type_vocab_size": 2, "conv_kernel_size": 3,
                                 "conv_act": "gelu", "embedding_size": 24}),
    "deberta-tanh": ("DebertaV2", {**DISTANT, "position_buckets": 8, "pos_att_type": "c2p", "conv_kernel_size": 5, "conv_groups": 4}),
    "deberta-p2c": ("DebertaV2", {**DISTANT, "pos_att_type": "p2c", "max_relative_positions": 12}),
    "modernbert": ("ModernBert", {**MODERN}),
    "modernbert-biased": ("ModernBert", {**MODERN, "attention_bias": True, "mlp_bias": True, "norm_bias": True,
                                         "hidden_activation": "gelu_pytorch_tanh", "global_attn_every_n_layers": 2}),
    "mmbert-32k": ("ModernBert", {**MODERN, "global_rope_theta": 900.0, "local_rope_theta": 160.0, "rope_scaling": YARN}),
}  # fmt: skip
FALLBACK: Final[Mapping[str, tuple[str, dict[str, Any]]]] = {
    "electra": ("Electra", {**SIZES, "embedding_size": 16}),
    "albert": ("Albert", {**SIZES, "embedding_size": 16}),
    "nomic-bert": ("NomicBert", SIZES),
    "longformer": ("Longformer", {**PADDED, "attention_window": [8, 8, 8]}),
    "fnet": ("FNet", SIZES),
    "deberta-plain": ("DebertaV2", {**SIZES, "relative_attention": False}),
}


@dataclass(frozen=True)
class TinyEncoder:
    """`model` is in float32 and evaluation mode; `folder` holds its checkpoint."""

    folder: Path
    model: Any

    @torch.no_grad()
    def states(self, row: list[int], kinds: list[int] | None = None) -> list[torch.Tensor]:
        """Of one row [L, hidden]: after the embedding, after each layer as the model reports them, then the last ones."""
        inputs = {"input_ids": torch.tensor([row])}
        if kinds is not None:
            inputs["token_type_ids"] = torch.tensor([kinds])
        out = self.model(**inputs, output_hidden_states=True)
        return [each[0] for each in (*out.hidden_states, out.last_hidden_state)]


def random_weights(model: torch.nn.Module, seed: int) -> None:
    """Larger than fresh ones, so that scores differ; biases and norms too."""
    generator = torch.Generator().manual_seed(seed)
    for parameter in model.parameters():
        if parameter.ndim > 1:
            parameter.data.normal_(0.0, 0.2, generator=generator)
        else:
            parameter.data.normal_(0.8, 0.2, generator=generator)


@cache
def tiny_encoder(name: str, root: Path, head: str = "Model") -> TinyEncoder:
    """`head`: which class of the architecture, "Model" or "ForSequenceClassification"."""
    kind, settings = {**NATIVE, **FALLBACK}[name]
    config = getattr(transformers, f"{kind}Config")(**settings)
    model = getattr(transformers, f"{kind}{head}")(config).eval()
    random_weights(model, len(name))
    folder = root / f"{name}-{head}"
    model.save_pretrained(folder)
    return TinyEncoder(folder, model)


MakeEncoder = Callable[..., TinyEncoder]
