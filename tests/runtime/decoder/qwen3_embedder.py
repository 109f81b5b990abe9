"""A tiny seeded Qwen3 embedder as sentence-transformers lays it out: last-token pooling, normalisation, prompts."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import Qwen3Config, Qwen3Model

from tests.models.tiny_models import randomize
from tests.models.tiny_sizes import SIZES

END = 2  # the tokenizer puts it behind every text, as that of Qwen3-Embedding does
QUERY_PROMPT = "Instruct: find\nQuery: "


def write_qwen3_embedder(folder: Path, *, normalize: bool = True) -> Path:
    """The folder of the package: config.json and weights of the bare model, tokenizer.json, module files."""
    config = Qwen3Config(**SIZES, num_hidden_layers=3, head_dim=32, tie_word_embeddings=True,
                         rope_parameters={"rope_type": "default", "rope_theta": 1e6})  # fmt: skip
    torch.manual_seed(5)
    model = Qwen3Model(config).eval()
    randomize(model)
    model.save_pretrained(folder)
    # Every character of ASCII is a token of its own; the rest of the vocabulary is not used.
    vocabulary = {"<unk>": 0, "<s>": 1, "<end>": END} | {chr(code): code - 22 for code in range(32, 127)} | {"\n": 110}
    backend = Tokenizer(models.WordLevel(vocabulary, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Split("", "isolated")
    backend.post_processor = processors.TemplateProcessing("$A <end>", pair="$A <end> $B <end>", special_tokens=[("<end>", END)])
    backend.save(str(folder / "tokenizer.json"))
    files = {
        "tokenizer_config.json": {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "<end>", "unk_token": "<unk>",
                                  "eos_token": "<end>", "padding_side": "left", "model_max_length": 200},
        "modules.json": [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
                         {"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]
                        + ([{"idx": 2, "name": "2", "path": "2_Normalize", "type": "sentence_transformers.models.Normalize"}] if normalize else []),
        "sentence_bert_config.json": {"max_seq_length": 200, "do_lower_case": False},
        "config_sentence_transformers.json": {"prompts": {"query": QUERY_PROMPT, "document": ""}, "default_prompt_name": None,
                                              "similarity_fn_name": "cosine"},
        "1_Pooling/config.json": {"word_embedding_dimension": SIZES["hidden_size"], "pooling_mode_cls_token": False,
                                  "pooling_mode_mean_tokens": False, "pooling_mode_max_tokens": False,
                                  "pooling_mode_lasttoken": True, "include_prompt": True},
    }  # fmt: skip
    for name, contents in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(contents))
    return folder
