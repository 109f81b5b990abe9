"""What is known about a model from its headers and JSON files, before any weight is read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One stored tensor. `shape` is outermost first (as in torch), also for GGUF. `offset` is absolute in `file`."""

    name: str
    dtype: str  # "F32" "BF16" "F16" "I32" ... or a GGUF block type such as "Q4_1"
    shape: tuple[int, ...]
    nbytes: int
    file: Path
    offset: int

    @property
    def elements(self) -> int:
        n = 1
        for d in self.shape:
            n *= d
        return n


@dataclass(frozen=True, slots=True)
class ModelCard:
    """Everything `inspect()` finds out. `config` speaks Hugging Face spelling for every format."""

    reference: str
    path: Path
    format: Literal["safetensors", "gguf"]
    architecture: str
    model_type: str
    config: Mapping[str, Any]
    generation_config: Mapping[str, Any]
    tensors: Mapping[str, TensorInfo]
    files: tuple[Path, ...]
    missing_files: tuple[str, ...]
    parameters: int
    weight_bytes: int
    dtype_bytes: Mapping[str, int]
    quantization: Mapping[str, Any] | None
    tokenizer: str | None  # "tokenizer.json", "tokenizer.model", "gguf", ... or None
    chat_template: bool
    licence: str | None
    context_length: int | None
    revision: str | None = None
    problems: tuple[str, ...] = field(default_factory=tuple)
