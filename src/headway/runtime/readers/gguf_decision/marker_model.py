"""Laya and Julia in a GGUF file: tensors under the names of ModernBERT and of the head, then as from a folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from headway.artifacts.card import TensorInfo
from headway.artifacts.gguf_files import read_gguf_model
from headway.artifacts.tokenizer import tokenizer_at
from headway.errors import PackageError
from headway.models.checkpoint_tensors import refuse_missing, refuse_shapes, refuse_unexpected
from headway.models.encoders.load import load_planned_encoder
from headway.models.encoders.modernbert import MODERNBERT
from headway.models.encoders.plan import EncoderPlan, plan_native_encoder
from headway.quantization.stored_format import stored_format
from headway.quantization.weight_reader import WeightReader
from headway.runtime.decoder.loading import DTYPES
from headway.runtime.family import ModelSpec, Placement
from headway.runtime.loaded_model import LoadedModel
from headway.runtime.model_facts import ModelFacts
from headway.runtime.package import Package
from headway.runtime.readers.decision_limits import decision_limits
from headway.runtime.readers.gguf_decision.marker_sequences import TemplateSequences
from headway.runtime.readers.gguf_decision.metadata import DecisionMetadata
from headway.runtime.readers.laya.head import MarkerHead, head_shapes
from headway.runtime.readers.laya.model import LayaModel
from headway.runtime.readers.laya.reader import LayaReader
from headway.runtime.readers.laya.settings import KINDS
from headway.runtime.readers.part_card import card_of_part

_ARCHITECTURE: Final = "modern-bert"
_PREFIX: Final = "encoder."
# GGUF name -> Hugging Face name, without ".weight" and ".bias". Source: llama.cpp b11434, gguf-py/gguf/tensor_mapping.py.
_OUTSIDE: Final[Mapping[str, str]] = {
    "token_embd": "encoder.embeddings.tok_embeddings", "token_embd_norm": "encoder.embeddings.norm", "output_norm": "encoder.final_norm",
    "token_types": "type_emb", "cls.norm": "scorer.0", "cls": "scorer.1", "cls.output": "scorer.3",
}  # fmt: skip
_ENCODER: Final[Mapping[str, str]] = {
    "attn_norm": "attn_norm", "attn_qkv": "attn.Wqkv", "attn_output": "attn.Wo", "ffn_norm": "mlp_norm", "ffn_up": "mlp.Wi", "ffn_down": "mlp.Wo",
}  # fmt: skip
_HEAD: Final[Mapping[str, str]] = {
    "attn_norm": "norm1", "attn_qkv": "self_attn.in_proj", "attn_output": "self_attn.out_proj", "ffn_norm": "norm2", "ffn_up": "linear1",
    "ffn_down": "linear2",
}  # fmt: skip


def describe_markers(package: Package, path: Path, found: DecisionMetadata) -> ModelSpec:
    """Raises ArtifactError: `unsupported_layout`, `invalid_package`, `missing_tensor`, `tensor_shape`, `unexpected_tensor`."""
    plan = _plan(package, path, found)
    files = tuple(sorted(file.name for file in plan.card.files))
    return ModelSpec(("decisions",), plan.card.parameters, files, plan.max_positions, ("float32", "bfloat16"), licence=package.licence,
                     stored=stored_format(plan.card.tensors.values()))  # fmt: skip


def load_markers(
    package: Package, path: Path, found: DecisionMetadata, spec: ModelSpec, placement: Placement, progress: Callable[[int, int], None]
) -> LoadedModel:
    plan = _plan(package, path, found)
    encoder = load_planned_encoder(plan, DTYPES[placement.dtype], progress=progress)
    with WeightReader(plan.card) as weights:
        head = MarkerHead({name: weights.tensor(name, torch.float32) for name in plan.remaining}, found.head_blocks)
    sequences = TemplateSequences(found, tokenizer_at(path), plan.max_positions)
    reader = LayaReader(sequences, found.temperature, placement.options.get("max_scan_tokens"))
    limits = decision_limits(plan.max_positions) | {"max_scan_tokens": reader.max_scan_tokens, "truncate_tokens": plan.max_positions}
    facts = ModelFacts(spec.parameters, placement.dtype, limits, question_types=tuple(sorted(KINDS)), extra={"decision_kind": found.kind})
    return LayaModel(facts, reader, encoder, head, int(plan.card.config["vocab_size"]), plan.parameters * encoder.dtype.itemsize)


def _plan(package: Package, path: Path, found: DecisionMetadata) -> EncoderPlan:
    if found.architecture != _ARCHITECTURE:
        raise PackageError(
            f"{path.name} has option markers on the architecture {found.architecture!r:.40}; {_ARCHITECTURE} is served",
            reason="unsupported_layout", param="general.architecture", fix="Serve the Hugging Face layout of the model.",
        )  # fmt: skip
    model = read_gguf_model(path)
    config = _config(path, model.metadata, found)
    tensors = _renamed(model.tensors, config["num_hidden_layers"])
    config["vocab_size"] = _embedding_rows(path, tensors)
    plan = plan_native_encoder(card_of_part(package.reference, config, tensors, model.files), MODERNBERT, _PREFIX)
    wanted = head_shapes(plan.hidden_size, found.head_blocks, actions=None)
    there = {name: plan.card.tensors[name].shape for name in plan.remaining}
    refuse_missing(plan.card, [name for name in wanted if name not in there])
    refuse_shapes(plan.card, [(name, there[name], shape) for name, shape in wanted.items() if there[name] != shape])
    refuse_unexpected(plan.card, [name for name in there if name not in wanted])
    return plan


def _config(path: Path, metadata: Mapping[str, Any], found: DecisionMetadata) -> dict[str, Any]:
    """ModernBERT's configuration in the spelling of Hugging Face. The blocks of the head are counted with the encoder's."""

    def value(key: str, default: Any = None) -> Any:
        stored = metadata.get(f"{_ARCHITECTURE}.{key}", default)
        if stored is None:
            raise PackageError(f"{path.name} lacks {_ARCHITECTURE}.{key}", reason="invalid_package", param=key, fix="Convert the model again.")
        return stored

    widths = value("feed_forward_length")
    base = float(value("rope.freq_base"))
    layers = int(value("block_count")) - found.head_blocks
    if layers < 1:
        raise PackageError(f"{path.name} has no block beside those of its head", reason="invalid_package", param="block_count")
    return {
        "model_type": "modernbert", "architectures": ["ModernBertModel"], "hidden_size": value("embedding_length"),
        "num_hidden_layers": layers, "num_attention_heads": value("attention.head_count"),
        # One width for each block, the encoder's first.
        "intermediate_size": int(np.ravel(widths)[0]), "max_position_embeddings": value("context_length"),
        "norm_eps": value("attention.layer_norm_epsilon"), "local_attention": value("attention.sliding_window"),
        "global_attn_every_n_layers": value("attention.sliding_window_pattern", 3), "global_rope_theta": base,
        "local_rope_theta": float(value("rope.freq_base_swa", base)), "hidden_activation": value("hidden_act", "gelu"),
    }  # fmt: skip


def _renamed(tensors: Mapping[str, TensorInfo], encoder_layers: int) -> dict[str, TensorInfo]:
    """Names that no table knows stay as they are, and are refused later."""
    renamed = {}
    for name, info in tensors.items():
        stem, _, kind = name.rpartition(".")
        spelled = f"{_OUTSIDE[stem]}.{kind}" if stem in _OUTSIDE else _block_tensor(stem, kind, encoder_layers) or name
        renamed[spelled] = replace(info, name=spelled)
    return renamed


def _block_tensor(stem: str, kind: str, encoder_layers: int) -> str | None:
    block, _, part = stem.removeprefix("blk.").partition(".")
    if not stem.startswith("blk.") or not block.isdecimal():
        return None
    layer = int(block)
    if layer < encoder_layers:
        return f"encoder.layers.{layer}.{_ENCODER[part]}.{kind}" if part in _ENCODER else None
    if part not in _HEAD:
        return None
    joint = "_" if part == "attn_qkv" else "."  # in_proj_weight and in_proj_bias are parameters, not a module
    return f"head.layers.{layer - encoder_layers}.{_HEAD[part]}{joint}{kind}"


def _embedding_rows(path: Path, tensors: Mapping[str, TensorInfo]) -> int:
    found = tensors.get("encoder.embeddings.tok_embeddings.weight")
    if found is None:
        raise PackageError(f"{path.name} lacks token_embd.weight", reason="missing_tensor", param="token_embd.weight", fix="Download it again.")
    return found.shape[0]
