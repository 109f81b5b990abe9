"""Local files -> ModelCard, for a folder in Hugging Face layout and for a GGUF file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from headway.artifacts.bounded_json import read_json_object, read_json_object_if_present
from headway.artifacts.card import ModelCard, TensorInfo
from headway.artifacts.context_length import context_length
from headway.artifacts.folder_contents import code_problems, dangling_links, has_chat_template, tokenizer_files
from headway.artifacts.gguf_config import gguf_config
from headway.artifacts.gguf_files import read_gguf_model, refuse_other_gguf
from headway.artifacts.gguf_types import UNQUANTIZED
from headway.artifacts.licence import licence_of_folder, licence_of_gguf
from headway.artifacts.parameter_count import count_parameters
from headway.artifacts.quantization_claim import claim_problems, claimed_quantization
from headway.artifacts.safetensors_folder import read_weight_files
from headway.errors import ArtifactError


def card_of_path(path: Path, reference: str, *, revision: str | None = None, licence: str | None = None) -> ModelCard:
    """The card of a local folder or `.gguf` file. `licence` is used when the files state none.

    Raises ArtifactError.
    """
    if not path.is_dir() or path.name.endswith(".gguf"):  # a directory of that name is refused by the reader
        return _gguf_card(path, reference, revision, licence)
    # A GGUF file carries its own configuration: a config.json beside it belongs to other weights.
    if not _has_safetensors(path) and (single := gguf_of_folder(path)) is not None:
        return _gguf_card(single, reference, revision, licence)
    return _folder_card(path, reference, revision, licence)


def gguf_of_folder(folder: Path) -> Path | None:
    """The GGUF model of a folder, or None when it has none.

    Raises ArtifactError (`ambiguous_model`) when there are several models in it.
    """
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".gguf"))
    models = [name for name in names if "mmproj" not in name.lower() and ("-of-" not in name or "-00001-of-" in name)]
    if len(models) > 1:
        raise ArtifactError(
            f"{folder} holds {len(models)} GGUF models: {', '.join(models[:8])}",
            reason="ambiguous_model",
            param=str(folder),
            fix="Name the file instead of the folder.",
        )
    return folder / models[0] if models else None


def _has_safetensors(folder: Path) -> bool:
    return any(entry.name.endswith((".safetensors", ".safetensors.index.json")) for entry in folder.iterdir())


def _dtype_bytes(tensors: Mapping[str, TensorInfo]) -> dict[str, int]:
    totals: dict[str, int] = {}
    for tensor in tensors.values():
        totals[tensor.dtype] = totals.get(tensor.dtype, 0) + tensor.nbytes
    return dict(sorted(totals.items(), key=lambda item: -item[1]))


def _folder_card(folder: Path, reference: str, revision: str | None, licence: str | None) -> ModelCard:
    config_path = folder / "config.json"
    # Weights are looked for first: "only .bin files" or "a LoRA adapter" says more than "no config.json".
    weights = read_weight_files(folder)
    if not config_path.exists() and not config_path.is_symlink():
        raise ArtifactError(
            f"{folder} has weights but no config.json",
            reason="missing_config",
            param=str(config_path),
            fix="Add the model's config.json: without it the architecture is unknown.",
        )
    config = read_json_object(config_path)
    quantization = claimed_quantization(folder, config)
    tokenizer = tokenizer_files(folder)
    sections = {name: read_json_object_if_present(folder / name) for name in ("tokenizer_config.json",)} | {
        "config.json": config
    }
    problems = code_problems(sections) + claim_problems(quantization, weights.tensors)
    if tokenizer is None:
        problems.append(
            f"no tokenizer in {folder}: looked for tokenizer.json, tokenizer.model, vocab.json + merges.txt, vocab.txt"
        )
    if weights.ignored:
        problems.append(f"not read, because they repeat weights or are in no index: {', '.join(weights.ignored[:8])}")
    model_type, architecture = _names(config, problems)
    return ModelCard(
        reference=reference,
        path=folder,
        format="safetensors",
        architecture=architecture,
        model_type=model_type,
        config=config,
        generation_config=read_json_object_if_present(folder / "generation_config.json"),
        tensors=weights.tensors,
        files=weights.files,
        missing_files=dangling_links(folder),
        parameters=count_parameters(weights.tensors, quantization),
        weight_bytes=sum(tensor.nbytes for tensor in weights.tensors.values()),
        dtype_bytes=_dtype_bytes(weights.tensors),
        quantization=quantization,
        tokenizer=tokenizer,
        chat_template=has_chat_template(folder),
        licence=licence_of_folder(folder) or licence,
        context_length=context_length(config),
        revision=revision,
        problems=tuple(problems),
    )


def _names(config: Mapping[str, Any], problems: list[str]) -> tuple[str, str]:
    """Model type and architecture; a missing one becomes "" with a problem line."""
    model_type = config.get("model_type")
    architectures = config.get("architectures")
    first = architectures[0] if isinstance(architectures, list) and architectures else None
    if not isinstance(first, str):
        problems.append("config.json names no architecture")
    return model_type if isinstance(model_type, str) else "", first if isinstance(first, str) else ""


def _gguf_card(path: Path, reference: str, revision: str | None, licence: str | None) -> ModelCard:
    model = read_gguf_model(path)
    refuse_other_gguf(path, model.metadata, model.tensors)
    spelled = gguf_config(model.metadata, model.tensors, str(path))
    dtype_bytes = _dtype_bytes(model.tensors)
    packed = [name for name in dtype_bytes if name not in UNQUANTIZED]
    quantization = {"quant_method": "gguf", "types": packed, "source": path.name} if packed else None
    problems = list(spelled.problems)
    if model.trailing_bytes:
        problems.append(f"{model.trailing_bytes} bytes follow the last tensor and belong to nothing")
    tokenizer = "gguf" if isinstance(model.metadata.get("tokenizer.ggml.tokens"), list) else None
    if tokenizer is None:
        problems.append("the file has no tokenizer (tokenizer.ggml.tokens)")
    return ModelCard(
        reference=reference,
        path=path,
        format="gguf",
        architecture=spelled.architecture,
        model_type=spelled.model_type,
        config=spelled.config,
        generation_config=spelled.generation_config,
        tensors=model.tensors,
        files=model.files,
        missing_files=(),
        parameters=count_parameters(model.tensors, quantization),
        weight_bytes=sum(tensor.nbytes for tensor in model.tensors.values()),
        dtype_bytes=dtype_bytes,
        quantization=quantization,
        tokenizer=tokenizer,
        chat_template=isinstance(model.metadata.get("tokenizer.chat_template"), str),
        licence=licence_of_gguf(model.metadata) or licence,
        context_length=spelled.config.get("max_position_embeddings"),
        revision=revision,
        problems=tuple(problems),
    )
