"""Small real model files for tests, written by the libraries that own the formats (random or zero weights)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from safetensors.numpy import save, save_file

LLAMA_CONFIG: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 32, "intermediate_size": 64,
    "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "vocab_size": 50, "max_position_embeddings": 128,
    "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "tie_word_embeddings": True,
}  # fmt: skip


def llama_tensors() -> dict[str, np.ndarray]:
    """A few tensors under Llama names; enough for inspection, which never looks for all of them."""
    return {
        "model.embed_tokens.weight": np.zeros((50, 32), np.float32),
        "model.layers.0.self_attn.q_proj.weight": np.zeros((32, 32), np.float16),
        "model.layers.1.self_attn.q_proj.weight": np.zeros((32, 32), np.float16),
        "model.norm.weight": np.ones(32, np.float32),
    }


def safetensors_bytes() -> bytes:
    return save(llama_tensors(), metadata={"format": "pt"})


def write_folder(folder: Path, *, config: dict[str, Any] | None = None, shards: int = 1) -> Path:
    """A model folder in Hugging Face layout with a tokenizer.json, in `shards` weight files."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(LLAMA_CONFIG if config is None else config))
    (folder / "tokenizer.json").write_text("{}")
    tensors = llama_tensors()
    if shards == 1:
        save_file(tensors, folder / "model.safetensors")
        return folder
    names, weight_map = sorted(tensors), {}
    for i in range(shards):
        shard = f"model-{i + 1:05d}-of-{shards:05d}.safetensors"
        mine = {name: tensors[name] for name in names[i::shards]}
        save_file(mine, folder / shard)
        weight_map.update(dict.fromkeys(mine, shard))
    (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    return folder


def gguf_writer(path: Path, architecture: str = "llama", *, tokens: int = 50) -> gguf.GGUFWriter:
    """A writer with the metadata of a small model; add tensors, then call `finish`."""
    writer = gguf.GGUFWriter(path, architecture)
    writer.add_context_length(256)
    writer.add_embedding_length(32)
    writer.add_block_count(2)
    writer.add_feed_forward_length(64)
    writer.add_head_count(4)
    writer.add_head_count_kv(2)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_rope_freq_base(500000.0)
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list([f"t{i}é" for i in range(tokens)])
    writer.add_token_types([1] * tokens)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    return writer


def finish(writer: gguf.GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write_gguf(path: Path, architecture: str = "llama", **tensors: np.ndarray) -> Path:
    writer = gguf_writer(path, architecture)
    writer.add_tensor("token_embd.weight", np.zeros((50, 32), np.float32))
    writer.add_tensor("output_norm.weight", np.ones(32, np.float32))
    for name, array in tensors.items():
        writer.add_tensor(name, array)
    finish(writer)
    return path
