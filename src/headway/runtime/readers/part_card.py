"""A ModelCard for the language model or encoder inside a package whose files lie elsewhere than in a model folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from headway.artifacts.card import ModelCard, TensorInfo
from headway.artifacts.context_length import context_length
from headway.artifacts.parameter_count import count_parameters


def card_of_part(reference: str, config: Mapping[str, Any], tensors: Mapping[str, TensorInfo], files: Sequence[Path]) -> ModelCard:
    """`config` in Hugging Face spelling; `tensors` of all `files`, also those that belong to other parts."""
    dtype_bytes: dict[str, int] = {}
    for tensor in tensors.values():
        dtype_bytes[tensor.dtype] = dtype_bytes.get(tensor.dtype, 0) + tensor.nbytes
    named = config.get("architectures")
    architectures = named if isinstance(named, list) and named else [""]
    return ModelCard(
        reference=reference,
        path=files[0].parent,
        format="gguf" if files[0].suffix == ".gguf" else "safetensors",
        architecture=str(architectures[0]),
        model_type=str(config.get("model_type", "")),
        config=config,
        generation_config={},
        tensors=tensors,
        files=tuple(files),
        missing_files=(),
        parameters=count_parameters(tensors, None),
        weight_bytes=sum(tensor.nbytes for tensor in tensors.values()),
        dtype_bytes=dtype_bytes,
        quantization=None,
        tokenizer=None,
        chat_template=False,
        licence=None,
        context_length=context_length(config),
    )
