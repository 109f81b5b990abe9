"""A configuration in Hugging Face spelling -> ModelShape: parameters, keys and values, without a weight file.

Counts follow the modules of transformers (tests compare with them). Composite models count their language model only; the
vision or audio tower is in the files, so it is counted where there are files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from headway.artifacts.context_length import context_length
from headway.capacity.attention_size import AttentionSize, attention_size
from headway.capacity.config_fields import ConfigFields
from headway.capacity.feed_forward_size import feed_forward_size
from headway.capacity.layer_kinds import LayerKind, layer_kinds, window_size
from headway.capacity.model_shape import KvLayers, ModelShape
from headway.capacity.state_size import state_size

_LAYERS: Final = ("num_hidden_layers", "n_layer", "num_layers", "n_layers")
_HIDDEN: Final = ("hidden_size", "n_embd", "d_model", "dim")
_HEADS: Final = ("num_attention_heads", "n_head", "n_heads", "num_heads")
_ENCODERS: Final = frozenset({"bert", "roberta", "xlm-roberta", "distilbert", "modernbert", "mpnet", "deberta-v2", "electra", "camembert"})
_UNTIED_BY_DEFAULT: Final = frozenset({"llama", "mistral", "mixtral", "qwen2", "qwen3", "qwen2_moe", "qwen3_moe", "phi", "phi3", "gpt_neox",
                                       "stablelm", "olmo2", "deepseek_v2", "deepseek_v3", "gpt_oss", "qwen3_next", "jamba"})  # fmt: skip
_NORMS: Final = {"gemma2": 4, "gemma3": 4, "gemma3_text": 4, "glm4": 4, "phi": 1, "cohere2": 1, "falcon": 1,
                 "mamba": 1, "mamba2": 1, "falcon_mamba": 1}  # in each layer; others have two  # fmt: skip
_NORM_BIAS: Final = frozenset({"gpt2", "gpt_neox", "opt", "phi", "falcon", "starcoder2", "stablelm", *_ENCODERS} - {"modernbert"})
_LEARNED_POSITIONS: Final = frozenset({"gpt2", "opt", "gpt_bigcode", *_ENCODERS} - {"modernbert", "deberta-v2"})


def config_shape(config: Mapping[str, Any], name: str) -> ModelShape:
    """Raises CapacityError (`unknown_geometry`) when the fields that decide are missing."""
    fields = ConfigFields.of(config)
    layers, hidden, heads = fields.need(*_LAYERS), fields.need(*_HIDDEN), fields.number(*_HEADS) or 0
    encoder = fields.model_type in _ENCODERS
    kinds = layer_kinds(fields, layers)
    attention, state = attention_size(fields, hidden, heads), state_size(fields, hidden)
    mixers = sum(attention.parameters if kind in ("full", "window") else state.parameters if kind == "state" else 0 for kind in kinds)
    forward = feed_forward_size(fields, hidden, kinds)
    vocabulary = fields.need("vocab_size")
    tables = vocabulary * hidden + _positions(fields, hidden)
    head = 0 if encoder or _tied(config, fields) else vocabulary * hidden
    if head and fields.model_type == "phi":
        head += vocabulary  # a bias
    total = tables + head + mixers + forward.parameters + _norms(fields, hidden, layers) + (_pooler(fields, hidden) if encoder else 0)
    skipped = forward.parameters - forward.active
    architectures = config.get("architectures")
    return ModelShape(
        name=name, kind="encoder" if encoder else "decoder", parameters=total, embeddings=tables, head=head,
        active=total - tables - skipped + (0 if head or encoder else vocabulary * hidden), layers=layers, hidden=hidden, heads=heads,
        kv_heads=attention.kv_heads, head_dim=attention.head_dim, intermediate=forward.width, vocabulary=vocabulary,
        context_length=context_length(config), kv=() if encoder else _kv(kinds, attention, fields),
        state_numbers=0 if encoder else state.numbers * kinds.count("state"),
        architecture=str(architectures[0]) if isinstance(architectures, list) and architectures else "",
    )  # fmt: skip


def _kv(kinds: Sequence[LayerKind], attention: AttentionSize, fields: ConfigFields) -> tuple[KvLayers, ...]:
    window = window_size(fields)
    found = ((kinds.count("full"), None), (kinds.count("window"), window))
    return tuple(KvLayers(count, attention.cached_heads, attention.cached_numbers, width) for count, width in found if count)


def _tied(config: Mapping[str, Any], fields: ConfigFields) -> bool:
    for section in (config, fields.fields):
        value = section.get("tie_word_embeddings")
        if isinstance(value, bool):
            return value
    return fields.model_type not in _UNTIED_BY_DEFAULT


def _positions(fields: ConfigFields, hidden: int) -> int:
    """Learned position rows, and what encoders add beside them: segment rows and the norm of the embedding."""
    if fields.model_type not in _LEARNED_POSITIONS:
        return 0
    rows = fields.number("max_position_embeddings", "n_positions") or 0
    if fields.model_type == "opt":
        rows += 2
    if fields.model_type not in _ENCODERS:
        return rows * hidden
    return (rows + (fields.number("type_vocab_size") or 0)) * hidden + 2 * hidden


def _norms(fields: ConfigFields, hidden: int, layers: int) -> int:
    """Norms of the layers, and a last one unless the layers end with theirs."""
    width = 2 * hidden if fields.model_type in _NORM_BIAS else hidden
    return width * (_NORMS.get(fields.model_type, 2) * layers + (0 if fields.model_type in _NORM_BIAS & _ENCODERS else 1))


def _pooler(fields: ConfigFields, hidden: int) -> int:
    return hidden * hidden + hidden if fields.model_type in ("bert", "roberta", "xlm-roberta") else 0
