"""A tiny Llama with random weights and a byte tokenizer, as a model folder; transformers is the oracle for its numbers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM, LlamaConfig

from headway.engine.async_engine import AsyncEngine
from headway.engine.config import EngineConfig
from headway.engine.core import Observers
from headway.telemetry.metrics import EngineMetrics
from tests.cases.scripted_model import save_tokenizer

VOCAB = 270  # more than the 258 of the tokenizer
EOS = 256


def save_tiny_model(folder: Path, **tokenizer: Any) -> Any:
    """Write model and tokenizer (`save_tokenizer`'s keywords) to `folder`; the model itself, in float32."""
    config = LlamaConfig(
        vocab_size=VOCAB, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=256, bos_token_id=257, eos_token_id=EOS, pad_token_id=0, tie_word_embeddings=False,
    )  # fmt: skip
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation="eager").eval()
    generator = torch.Generator().manual_seed(5)
    for name, weight in model.named_parameters():
        noise = torch.randn(weight.shape, generator=generator)
        weight.data = 1 + noise * 0.1 if "norm" in name else noise * (1.5 / weight.shape[-1] ** 0.5)
    model.save_pretrained(folder)
    save_tokenizer(folder, **tokenizer)
    return model


def tiny_engine(folder: Path, **config: Any) -> tuple[AsyncEngine, EngineMetrics]:
    """A started engine on the folder, float32, context 64."""
    metrics = EngineMetrics("tiny", max_model_len=64)
    given = {"dtype": "float32", "max_model_len": 64, "kv_cache_memory_bytes": 4 << 20, "served_model_name": ("tiny",), **config}
    engine = AsyncEngine(EngineConfig(str(folder), **given), Observers(metrics.on_step, metrics.on_request))
    engine.start()
    asyncio.run(engine.ready())
    return engine, metrics
