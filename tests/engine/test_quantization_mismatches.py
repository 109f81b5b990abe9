"""Flags, configurations and tensors that say different things of how weights are packed: each contradiction has a message of its own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file

from headway.engine.config import EngineConfig
from headway.engine.loading import load_engine
from headway.errors import HeadwayError
from tests.artifacts.model_files import write_gguf
from tests.engine.tiny_folder import complete_tiny_model, write_byte_tokenizer
from tests.models.test_quantized_checkpoints import packed
from tests.models.tiny_models import TinyModel
from tests.quantization.packers import BY_NAME, Case

Make = Callable[[TinyModel, Path], Path]


def of(name: str, **claim: Any) -> Make:
    """Packed as `name`; `claim` replaces fields of the section."""

    def make(dense: TinyModel, folder: Path) -> Path:
        case = BY_NAME[name]
        packed(dense, Case(case.name, {**case.claim, **claim}, case.pack), folder)
        write_byte_tokenizer(folder)
        return folder

    return make


def dense_with(section: dict[str, Any] | None) -> Make:
    def make(dense: TinyModel, folder: Path) -> Path:
        folder.mkdir()
        config = json.loads((dense.folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config if section is None else config | {"quantization_config": section}))
        save_file(load_file(dense.folder / "model.safetensors"), folder / "model.safetensors")
        write_byte_tokenizer(folder)
        return folder

    return make


def without_section(name: str) -> Make:
    def make(dense: TinyModel, folder: Path) -> Path:
        of(name)(dense, folder)
        config = json.loads((folder / "config.json").read_text())
        del config["quantization_config"]
        (folder / "config.json").write_text(json.dumps(config))
        return folder

    return make


def gguf(dense: TinyModel, folder: Path) -> Path:
    folder.mkdir()
    return write_gguf(folder / "model.gguf")


GPTQ, AWQ = BY_NAME["gptq 4 bit"].claim, BY_NAME["awq"].claim
CASES: list[tuple[str, Make, str | None, str, tuple[str, ...]]] = [
    ("a flag for another format", of("gptq 4 bit"), "awq", "quantization_conflict", ("model config (gptq,", "argument (awq)")),
    ("the other way round", of("awq"), "gptq", "quantization_conflict", ("model config (awq,", "argument (gptq)")),
    ("a format made on the fly, of packed weights", of("packed 4 bit"), "fp8", "quantization_conflict", ("(compressed-tensors,", "argument (fp8)")),
    ("a flag for a GGUF file", gguf, "awq", "quantization_conflict", ("(gguf,", "argument (awq)")),
    ("gguf for a folder", of("awq"), "gguf", "quantization_conflict", ("(awq,", "argument (gguf)")),
    ("a stored format, of plain weights", dense_with(None), "gptq", "quantization_conflict", ("is not quantized", "gptq cannot be made while loading")),
    ("a flag nobody knows", dense_with(None), "awk", "unknown_quantization", ("'awk' (from the flag --quantization)", "Known are")),
    ("a section nobody knows", dense_with({"quant_method": "exl9"}), None, "unknown_quantization", ("'exl9' (from config.json of",)),
    ("a section, and plain tensors", dense_with(GPTQ), None, "quantization_mismatch", ("config.json says gptq", "no tensor ends in .qweight")),
    ("packed tensors, and no section", without_section("gptq 4 bit"), None, "quantization_mismatch", (".qweight is packed, but no file says how",)),
    ("8-bit floats, and no section", without_section("fp8 one scale"), None, "quantization_mismatch", ("is packed, but no file says how",)),
    ("a section that says awq, tensors of gptq", of("gptq 4 bit", quant_method="awq"), None, "quantization_mismatch",
     ("config.json says awq, but", "is packed as gptq packs weights")),
    ("a section that says gptq, tensors of awq", of("awq", quant_method="gptq"), None, "quantization_mismatch",
     ("config.json says gptq, but", "is packed as awq packs weights")),
    ("a section that says fp8, tensors of int8", of("int8 by output", quant_method="fp8"), None, "packed_dtype", ("stored as I8", "F8_E4M3")),
    ("groups of another size", of("gptq 4 bit", group_size=16), None, "packed_shape", ("qzeros has shape", "groups of 16")),
    ("another number of bits", of("gptq 4 bit", bits=8), None, "packed_shape", ("GPTQ int8",)),
    ("zero points of the other version", of("gptq 4 bit without g_idx", checkpoint_format="gptq_v2"), None, "packed_values",
     ("all zero points must be 8", "checkpoint_format")),
]  # fmt: skip


@pytest.mark.parametrize(("make", "flag", "reason", "says"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_message(make: Make, flag: str | None, reason: str, says: tuple[str, ...], tmp_path: Path) -> None:
    folder = make(complete_tiny_model("smollm", tmp_path / "dense"), tmp_path / "model")
    with pytest.raises(HeadwayError) as refused:
        load_engine(EngineConfig(str(folder), quantization=flag, dtype="float32", kv_cache_memory_bytes=1 << 20))
    assert refused.value.reason == reason, refused.value.message
    assert all(part in refused.value.message for part in says), refused.value.message


@pytest.mark.parametrize("flag", [None, "gptq", "gptq_marlin"])
def test_a_flag_that_says_what_the_checkpoint_says(flag: str | None, tmp_path: Path) -> None:
    folder = of("gptq 4 bit")(complete_tiny_model("smollm", tmp_path / "dense"), tmp_path / "model")
    loaded = load_engine(EngineConfig(str(folder), quantization=flag, dtype="float32", kv_cache_memory_bytes=1 << 20))
    assert loaded.card.quantization is not None
    assert loaded.card.quantization["quant_method"] == "gptq"
