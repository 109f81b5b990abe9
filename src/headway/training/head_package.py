"""The encoder with trained heads, as a package that `vllm-srun serve` takes: it answers `/v1/classify` and `/v1/embeddings`."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np
from safetensors.numpy import save_file

from headway.runtime.tasks.sentence_heads import LAYOUT, WEIGHTS
from headway.training.head_fit import FittedHead

_ENCODER: Final = "model.safetensors"
_FILES: Final = (
    "config.json", "modules.json", "1_Pooling/config.json", "sentence_bert_config.json", "config_sentence_transformers.json",
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt",
)  # fmt: skip


def write_package(folder: Path, encoder: Path, heads: Mapping[str, FittedHead]) -> None:
    """`encoder` is a package of sentence-transformers; its weights are linked, not copied, where the file system can."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in _FILES:
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(encoder / name, folder / name)
    _link(encoder / _ENCODER, folder / _ENCODER)
    layout = [{"name": name, "labels": list(head.labels), "activation": "tanh"} for name, head in heads.items()]
    (folder / LAYOUT).write_text(json.dumps({"version": 1, "heads": layout}, indent=1), "utf-8")
    tensors = {f"{name}.{part}": tensor for name, head in heads.items() for part, tensor in head.tensors().items()}
    save_file({name: np.ascontiguousarray(tensor) for name, tensor in tensors.items()}, folder / WEIGHTS)


def _link(source: Path, target: Path) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
