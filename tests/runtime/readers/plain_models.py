"""Backbones of the oracles: classes of transformers filled with a package's tensors, one row at a time, and numpy for heads."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
import transformers

Floats = npt.NDArray[np.float64]
_CLASSES = {
    "qwen3": ("Qwen3Config", "Qwen3Model"), "qwen3_5_text": ("Qwen3_5TextConfig", "Qwen3_5TextModel"), "modernbert": ("ModernBertConfig", "ModernBertModel"),
}  # fmt: skip


def filled(config: Mapping[str, Any], tensors: Mapping[str, torch.Tensor], *, causal: bool = True) -> Any:
    """A model of transformers. Not `causal`: transformers' own switch for decoders that look in both directions."""
    config_class, model_class = _CLASSES[config["model_type"]]
    fields = {key: value for key, value in config.items() if key not in ("architectures", "model_type")}
    built = getattr(transformers, config_class)(**fields)
    built._attn_implementation = "eager"
    if not causal:
        built.is_causal = False
    model = getattr(transformers, model_class)(built)
    model.load_state_dict({name: tensor.float() for name, tensor in tensors.items()})
    return model.eval()


def states(model: Any, ids: Sequence[int]) -> Floats:
    """[tokens, hidden] after the last norm."""
    with torch.inference_mode():
        found: Floats = model(input_ids=torch.tensor([list(ids)])).last_hidden_state[0].double().numpy()
    return found


def below(tensors: Mapping[str, torch.Tensor], prefix: str) -> dict[str, torch.Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}


def numbers(tensors: Mapping[str, torch.Tensor]) -> dict[str, Floats]:
    return {name: tensor.double().numpy() for name, tensor in tensors.items()}


def layer_norm(x: Floats, weight: Floats, bias: Floats | float = 0.0) -> Floats:
    centred = x - x.mean(-1, keepdims=True)
    normed: Floats = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * weight + bias
    return normed


def gelu(x: Floats) -> Floats:
    return x * 0.5 * (1 + np.vectorize(math.erf)(x / math.sqrt(2)))


def unit(x: Floats) -> Floats:
    found: Floats = x / np.sqrt((x**2).sum(-1, keepdims=True))
    return found


def softmax(x: Floats) -> Floats:
    raised = np.exp(x - x.max(-1, keepdims=True))
    found: Floats = raised / raised.sum(-1, keepdims=True)
    return found


def candidate_logits(head: Mapping[str, Floats], options: Floats, query: Floats) -> Floats:
    """`<K c, Q q> / sqrt(d) + w . GELU(Mc c + Mq q)`."""
    found = []
    q = layer_norm(query, head["query_norm.weight"], head["query_norm.bias"])
    for option in options:
        c = layer_norm(option, head["candidate_norm.weight"], head["candidate_norm.bias"])
        near = float((head["key.weight"] @ c) @ (head["query.weight"] @ q)) / math.sqrt(len(head["key.weight"]))
        mixed = head["candidate_mlp.weight"] @ c + head["candidate_mlp.bias"] + head["query_mlp.weight"] @ q
        found.append(near + float(head["scalar.weight"][0] @ gelu(mixed)))
    return np.array(found)
