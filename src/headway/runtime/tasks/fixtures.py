"""Tiny packages with random weights, one for each task on each backbone, as transformers and sentence-transformers save them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import torch
from safetensors.torch import save_file

from headway.runtime.readers.fixtures.tiny_backbone import random_decoder, random_tensor, tiny_decoder_config
from headway.runtime.tasks.fixture_tokenizers import Kind, Style, write_tokenizer
from headway.runtime.tasks.relevance import RERANK_CONTRACT

LIMIT: Final = 512
_SIZES: Final[Mapping[str, Any]] = {
    "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 96, "max_position_embeddings": LIMIT,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Encoder:
    """How a backbone differs from `_SIZES`, and what it reads."""

    model_type: str
    tokens: Kind
    style: Style = "bert"
    token_types: bool = False
    fields: Mapping[str, Any] = field(default_factory=dict)


_ROBERTA: Final = {"max_position_embeddings": LIMIT + 2, "type_vocab_size": 1}
_ENCODERS: Final[Mapping[str, _Encoder]] = {
    "bert": _Encoder("bert", "wordpiece", token_types=True),
    "electra": _Encoder("electra", "wordpiece", token_types=True, fields={"embedding_size": 32}),
    "distilbert": _Encoder("distilbert", "wordpiece", fields={"dim": 64, "n_layers": 3, "n_heads": 4, "hidden_dim": 96}),
    "mpnet": _Encoder("mpnet", "wordpiece", "roberta", fields={"max_position_embeddings": LIMIT + 2}),
    "roberta": _Encoder("roberta", "byte-level", "roberta", fields=_ROBERTA),
    "xlm-roberta": _Encoder("xlm-roberta", "unigram", "roberta", fields=_ROBERTA),
    "deberta-v2": _Encoder(
        "deberta-v2", "unigram",
        fields={"relative_attention": True, "position_buckets": 32, "pos_att_type": ["p2c", "c2p"], "norm_rel_ebd": "layer_norm",
                "share_att_key": True, "position_biased_input": False, "type_vocab_size": 0, "pooler_hidden_size": 64},
    ),
    "modernbert": _Encoder("modernbert", "byte-level", fields={"local_attention": 16, "global_attn_every_n_layers": 2}),
}  # fmt: skip

_CHOICES: Final = ("programming", "cooking", "travel", "other")
_TAGS: Final = ("O", "B-PERSON", "I-PERSON", "B-PHONE", "I-PHONE")
_ENTAILMENT: Final = ("contradiction", "entailment", "neutral")
_TEMPLATE: Final = "Question: {question}\nContext: {context}"


def _variants() -> dict[str, tuple[str, str]]:
    """name -> task and backbone."""
    every = [(task, name) for task in ("sequence", "token", "embedding", "rerank", "entailment") for name in _ENCODERS]
    some = [(task, name) for task in ("scores", "grounded") for name in ("bert", "modernbert")]
    own = [("nested", "modernbert"), ("relevance", "modernbert"), ("embedding", "qwen3")]
    return {f"{task}-{name}": (task, name) for task, name in (*every, *some, *own)}


VARIANTS: Final = _variants()


def write_task_package(folder: Path, variant: str, seed: int) -> None:
    """A few hundred kB. Raises KeyError for an unknown variant."""
    task, name = VARIANTS[variant]
    if name == "qwen3":
        _write_decoder(folder, seed)
        return
    encoder = _ENCODERS[name]
    tokens = write_tokenizer(folder, encoder.tokens, encoder.style, LIMIT, encoder.token_types)
    settings = {**_SIZES, **encoder.fields, **{key: tokens[key] for key in ("vocab_size", "pad_token_id", "cls_token_id", "sep_token_id")},
                "bos_token_id": tokens["cls_token_id"], "eos_token_id": tokens["sep_token_id"], **_task_fields(task)}  # fmt: skip
    _write_model(folder, _CLASSES[task], encoder.model_type, settings, seed)
    if task in ("embedding", "nested"):
        pooling = "mean_tokens" if task == "nested" or name in ("bert", "mpnet") else "cls_token"
        _write_sentence_files(folder, pooling, _SIZES["hidden_size"])
    if task == "nested":
        (folder / "onnx").mkdir()
        for layer in (1, 2):
            (folder / "onnx" / f"model_layer_{layer}.onnx").touch()
    if task == "relevance":
        _write_scorers(folder, seed)
    if task in _POINTS:
        _write_json(folder / "operating_point.json", _POINTS[task])


_CLASSES: Final = {
    "sequence": "AutoModelForSequenceClassification", "scores": "AutoModelForSequenceClassification",
    "rerank": "AutoModelForSequenceClassification", "entailment": "AutoModelForSequenceClassification",
    "token": "AutoModelForTokenClassification", "grounded": "AutoModelForTokenClassification",
    "embedding": "AutoModel", "nested": "AutoModel", "relevance": "AutoModel",
}  # fmt: skip
_NESTED_CONTRACT: Final = {
    "version": 1, "intermediate_normalization": "none", "final_normalization": "final_norm", "pooling": "attention_mask_mean",
    "pooling_accumulation_dtype": "float32", "truncate_before_l2_normalize": True,
}  # fmt: skip
_POINTS: Final[Mapping[str, Any]] = {
    "scores": {
        "score_type": "independent_sigmoid", "comparison": "score >= threshold", "labels": list(_CHOICES), "thresholds": [0.5, 0.4, 0.6, 0.5],
        "input_policy": {
            "strategy": "overlapping_content_windows", "window_tokens_including_special_tokens": 64, "overlap_content_tokens": 16,
            "max_document_tokens_including_special_tokens": 4096,
        },
    },
    "grounded": {
        "input_pair": [_TEMPLATE, "answer"], "label2id": {"supported": 0, "unsupported": 1}, "token_threshold": 0.5,
        "threshold_comparison": "greater_or_equal", "max_input_tokens": LIMIT,
    },
}  # fmt: skip


def _task_fields(task: str) -> dict[str, Any]:
    labels = {"sequence": _CHOICES, "scores": _CHOICES, "token": _TAGS, "entailment": _ENTAILMENT, "rerank": ("LABEL_0",),
              "grounded": ("supported", "unsupported")}.get(task)  # fmt: skip
    fields: dict[str, Any] = {} if labels is None else {
        "id2label": dict(enumerate(labels)), "label2id": {label: i for i, label in enumerate(labels)},
    }  # fmt: skip
    if task == "scores":
        fields["problem_type"] = "multi_label_classification"
    contracts: dict[str, dict[str, Any]] = {"nested": {"representation_contract": _NESTED_CONTRACT, "matryoshka_dimensions": [64, 32, 16]},
                 "relevance": {"representation_contract": RERANK_CONTRACT}}  # fmt: skip
    return fields | contracts.get(task, {})


def _write_model(folder: Path, auto_class: str, model_type: str, settings: Mapping[str, Any], seed: int) -> None:
    import transformers

    config = transformers.CONFIG_MAPPING[model_type](**settings)
    with torch.device("meta"):
        model = getattr(transformers, auto_class).from_config(config, attn_implementation="eager")
    chance = torch.Generator().manual_seed(seed)
    tied = set(getattr(model, "all_tied_weights_keys", None) or ())
    weights = {
        name: random_tensor(name.lower(), tuple(value.shape), chance, _scale(name)) for name, value in model.state_dict().items()
        if name not in tied and value.is_floating_point()
    }  # fmt: skip
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    config.architectures = [type(model).__name__]
    config.save_pretrained(folder)


def _scale(name: str) -> float:
    """Large for words and small for what all tokens share, so that tokens of one text differ in their answers."""
    if "word_embeddings" in name or "tok_embeddings" in name:
        return 1.0
    return 0.02 if name.endswith("bias") else 0.2


def _write_decoder(folder: Path, seed: int) -> None:
    tokens = write_tokenizer(folder, "byte-level", "qwen", LIMIT, token_types=False)
    config = tiny_decoder_config("qwen3", tokens["vocab_size"])
    save_file(random_decoder(config, seed), folder / "model.safetensors", metadata={"format": "pt"})
    _write_json(folder / "config.json", config)
    _write_sentence_files(folder, "lasttoken", config["hidden_size"])


def _write_sentence_files(folder: Path, pooling: str, width: int) -> None:
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    _write_json(folder / "modules.json", [
        {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"} for i, (path, kind) in enumerate(kinds.items())
    ])  # fmt: skip
    (folder / "1_Pooling").mkdir()
    _write_json(folder / "1_Pooling" / "config.json", {
        "word_embedding_dimension": width, **{f"pooling_mode_{each}": each == pooling for each in ("cls_token", "mean_tokens", "lasttoken")},
    })  # fmt: skip
    _write_json(folder / "sentence_bert_config.json", {"max_seq_length": LIMIT, "do_lower_case": False})
    _write_json(folder / "config_sentence_transformers.json", {"prompts": {"query": "Query: ", "document": ""}, "default_prompt_name": None})


def _write_scorers(folder: Path, seed: int) -> None:
    layers, widths = (2, 3), (64, 32)
    _write_json(folder / "matryoshka_config.json", {
        "layer_indices": list(layers), "dim_indices": list(widths), "hidden_size": _SIZES["hidden_size"],
        "num_layers": _SIZES["num_hidden_layers"], "pooling_strategy": "cls", "has_final_norm": True,
    })  # fmt: skip
    chance = torch.Generator().manual_seed(seed + 1)
    heads = {}
    for layer in layers:
        for width in widths:
            for part, shape in (("0.weight", (width // 2, width)), ("0.bias", (width // 2,)), ("3.weight", (1, width // 2)), ("3.bias", (1,))):
                heads[f"{layer}.{width}.{part}"] = torch.randn(shape, generator=chance) * 0.3
    save_file(heads, folder / "classification_heads.safetensors")


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
