"""A tiny Qwen3 decision model as a GGUF file, made with the writer of llama.cpp's own package `gguf`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from safetensors.numpy import load_file

CHAT = "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
_LAYER = {
    "input_layernorm": "attn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm", "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down",
}  # fmt: skip
_OTHER = {"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}


def write_decision_gguf(folder: Path, path: Path, kind: str, template: str, temperatures: Mapping[str, float]) -> None:
    """`folder`: a Qwen3 language model in Hugging Face layout. `kind`: the value of `qwen3.decision.type`."""
    config = json.loads((folder / "config.json").read_text())
    writer = gguf.GGUFWriter(path, "qwen3")
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(config["num_attention_heads"])
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_key_length(config["head_dim"])
    writer.add_value_length(config["head_dim"])
    writer.add_rope_freq_base(config["rope_parameters"]["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    add_tokenizer(writer, folder)
    writer.add_chat_template([{"name": "default", "template": CHAT}, {"name": "systemone", "template": template}])
    writer.add_string("qwen3.decision.type", kind)
    for name, value in temperatures.items():
        writer.add_float32(f"qwen3.decision.temperature.{name}", value)
    for name, tensor in sorted(load_file(folder / "model.safetensors").items()):
        writer.add_tensor(_renamed(name), np.ascontiguousarray(tensor, dtype=np.float32))
    finish(writer)


def add_tokenizer(writer: gguf.GGUFWriter, folder: Path) -> None:
    """A byte-level tokenizer.json with the split of GPT-2."""
    found: dict[str, Any] = json.loads((folder / "tokenizer.json").read_text())
    names = {index: token for token, index in found["model"]["vocab"].items()}
    special = {token["id"]: token["content"] for token in found["added_tokens"]}
    names |= special
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list([names[index] for index in range(len(names))])
    writer.add_token_types([int(gguf.TokenType.CONTROL if index in special else gguf.TokenType.NORMAL) for index in range(len(names))])
    writer.add_token_merges([" ".join(merge) if isinstance(merge, list) else merge for merge in found["model"]["merges"]])
    ids = {token: index for index, token in special.items()}
    for token, add in (("<|im_end|>", writer.add_eos_token_id), ("<|endoftext|>", writer.add_pad_token_id), ("[CLS]", writer.add_bos_token_id),
                       ("[SEP]", writer.add_sep_token_id), ("[MASK]", writer.add_mask_token_id), ("[PAD]", writer.add_pad_token_id)):  # fmt: skip
        if token in ids:
            add(ids[token])
    writer.add_add_bos_token(False)


def finish(writer: gguf.GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _renamed(name: str) -> str:
    stem = name.removesuffix(".weight")
    if stem in _OTHER:
        return f"{_OTHER[stem]}.weight"
    _, _, layer, rest = stem.split(".", 3)
    return f"blk.{layer}.{_LAYER[rest]}.weight"


_MARKER_OUTSIDE = {
    "encoder.embeddings.tok_embeddings": "token_embd", "encoder.embeddings.norm": "token_embd_norm", "encoder.final_norm": "output_norm",
    "type_emb": "token_types", "scorer.0": "cls.norm", "scorer.1": "cls", "scorer.3": "cls.output",
}  # fmt: skip
_MARKER_BLOCK = {
    "attn_norm": "attn_norm", "attn.Wqkv": "attn_qkv", "attn.Wo": "attn_output", "mlp_norm": "ffn_norm", "mlp.Wi": "ffn_up", "mlp.Wo": "ffn_down",
    "norm1": "attn_norm", "self_attn.in_proj": "attn_qkv", "self_attn.out_proj": "attn_output", "norm2": "ffn_norm", "linear1": "ffn_up", "linear2": "ffn_down",
}  # fmt: skip


def write_marker_gguf(folder: Path, path: Path, template: str) -> None:
    """`folder`: a package of the family `laya`. As llama.cpp converts one: the blocks of the head come after the encoder's."""
    encoder = json.loads((folder / "encoder" / "config.json").read_text())
    settings = json.loads((folder / "rl_agent_config.json").read_text())
    layers, head = encoder["num_hidden_layers"], settings["head_layers"]
    writer = gguf.GGUFWriter(path, "modern-bert")
    writer.add_block_count(layers + head)
    writer.add_context_length(encoder["max_position_embeddings"])
    writer.add_embedding_length(encoder["hidden_size"])
    writer.add_feed_forward_length([encoder["intermediate_size"]] * layers + [4 * encoder["hidden_size"]] * head)
    writer.add_head_count(encoder["num_attention_heads"])
    writer.add_rope_freq_base(encoder["global_rope_theta"])
    writer.add_float32("modern-bert.rope.freq_base_swa", encoder["local_rope_theta"])
    writer.add_layer_norm_eps(encoder["norm_eps"])
    writer.add_causal_attention(False)
    writer.add_sliding_window(encoder["local_attention"])
    writer.add_uint32("modern-bert.attention.sliding_window_pattern", encoder["global_attn_every_n_layers"])
    writer.add_vocab_size(encoder["vocab_size"])
    writer.add_token_type_count(3)
    add_tokenizer(writer, folder / "tokenizer")
    writer.add_chat_template([{"name": "systemone", "template": template}])
    writer.add_string("modern-bert.decision.type", "laya")
    writer.add_uint32("modern-bert.decision.block_count", head)
    writer.add_uint32("modern-bert.decision.max_head_tokens", settings["head_max_len"])
    for name, value in (("choice", 1.5), ("noul", 1.25), ("choice.3_5", 1.75), ("choice.11", 0.5)):
        writer.add_float32(f"modern-bert.decision.temperature.{name}", value)
    for name, tensor in sorted(load_file(folder / "model.safetensors").items()):
        if not name.startswith("act_head.") and name != "temperature":
            writer.add_tensor(_marker_name(name, layers), np.ascontiguousarray(tensor, dtype=np.float32))
    finish(writer)


def _marker_name(name: str, layers: int) -> str:
    stem, _, kind = name.replace("in_proj_", "in_proj.").rpartition(".")
    if stem in _MARKER_OUTSIDE:
        return f"{_MARKER_OUTSIDE[stem]}.{kind}"
    start, rest = stem.split("layers.")
    number, part = rest.split(".", 1)
    return f"blk.{int(number) + (layers if start == 'head.' else 0)}.{_MARKER_BLOCK[part]}.{kind}"
