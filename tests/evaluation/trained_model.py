"""A tiny language model that makes some sense, and the same packed as GPTQ: trained here in seconds, always to the same weights."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, LlamaConfig

from headway.evaluation.texts import Text
from tests.artifacts.trained_tokenizers import save
from tests.quantization.packers import along_rows

GROUP, BITS, TOP = 32, 3, 7
_SENTENCES = [
    "The old farmer walked slowly to the market and sold three brown horses. ",
    "In the evening the children read a book about the sea and the wind. ",
    "She opened the window, because the room was warm, and looked at the river. ",
    "The train left the station at noon and came back before the night. ",
    "He bought bread, milk and cheese, and went home through the rain. ",
    "A small dog slept under the table while the rain fell on the roof. ",
]


def text() -> Text:
    """What it was trained on, in another order."""
    order = np.random.default_rng(3).integers(0, len(_SENTENCES), 120)
    return Text("sentences", "".join(_SENTENCES[i] for i in order))


@cache
def trained_model(root: Path) -> Path:
    """`root / trained`: float32, two layers."""
    home = root / "trained"
    save("byte_level", home)
    torch.manual_seed(5)
    config = LlamaConfig(
        vocab_size=420, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        max_position_embeddings=256, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    ids = _ids(home)
    generator = torch.Generator().manual_seed(7)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for _ in range(120):
        starts = torch.randint(0, len(ids) - 49, (8,), generator=generator)
        batch = torch.stack([ids[start : start + 48] for start in starts.tolist()])
        optimizer.zero_grad()
        model(input_ids=batch, labels=batch).loss.backward()
        optimizer.step()
    model.save_pretrained(home)
    return home


def gptq_copy(model: Path, home: Path, *, version: int, says: str, group_says: int = GROUP) -> Path:
    """The matrices of the layers rounded to 3 bits in groups of 32. Zero points are stored as `version` stores them, and `says` what the
    configuration says; so does `group_says`."""
    home.mkdir()
    tensors = load_file(model / "model.safetensors")
    for name in [name for name in tensors if name.endswith("_proj.weight")]:
        module = name.removesuffix(".weight")
        tensors |= {f"{module}.{ending}": tensor for ending, tensor in _packed(tensors.pop(name), version).items()}
    save_file(tensors, home / "model.safetensors")
    claim = {"quant_method": "gptq", "bits": BITS, "group_size": group_says, "desc_act": False, "sym": False, "checkpoint_format": says}
    copy_folder(model, home, {"quantization_config": claim})
    return home


def copy_folder(model: Path, home: Path, changes: dict[str, Any]) -> None:
    """Everything but the weights."""
    home.mkdir(exist_ok=True)
    for path in model.iterdir():
        if path.suffix == ".json":
            (home / path.name).write_bytes(path.read_bytes())
    config = json.loads((model / "config.json").read_text())
    (home / "config.json").write_text(json.dumps(config | changes))


def _packed(weight: torch.Tensor, version: int) -> dict[str, torch.Tensor]:
    out, width = weight.shape
    groups = weight.double().numpy().reshape(out, width // GROUP, GROUP)
    low, high = groups.min(-1), groups.max(-1)
    scale = np.maximum((high - low) / TOP, 1e-6).astype(np.float16)
    zero = np.clip(np.round(-low / scale.astype(np.float64)), 1, TOP).astype(np.int64)
    q = np.clip(np.round(groups / scale.astype(np.float64)[..., None]) + zero[..., None], 0, TOP).astype(np.int64)
    return {
        "qweight": along_rows(q.reshape(out, width), BITS).T.contiguous(),
        "qzeros": along_rows((zero - (version == 1)).T, BITS),
        "scales": torch.from_numpy(np.ascontiguousarray(scale.T)),
        "g_idx": torch.arange(width, dtype=torch.int32) // GROUP,
    }


def _ids(home: Path) -> torch.Tensor:
    return torch.tensor(Tokenizer.from_file(str(home / "tokenizer.json")).encode(text().content).ids)
