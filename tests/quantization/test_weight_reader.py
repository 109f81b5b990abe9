"""Reading tensors: values, dtypes, alignment, memory, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import gguf
import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from headway.artifacts.card import ModelCard, TensorInfo
from headway.artifacts.gguf_header import read_gguf_header
from headway.artifacts.safetensors_header import read_safetensors_header
from headway.errors import ArtifactError, NotBuiltError
from headway.quantization.weight_reader import WeightReader


def card_of(tensors: dict[str, TensorInfo], path: Path, quantization: dict[str, str] | None = None) -> ModelCard:
    return ModelCard(
        reference="m", path=path, format="safetensors", architecture="", model_type="", config={}, generation_config={},
        tensors=tensors, files=(path,), missing_files=(), parameters=0, weight_bytes=0, dtype_bytes={},
        quantization=quantization, tokenizer=None, chat_template=False, licence=None, context_length=None,
    )  # fmt: skip


@pytest.fixture
def stored(tmp_path: Path) -> tuple[ModelCard, dict[str, torch.Tensor]]:
    generator = torch.Generator().manual_seed(0)
    tensors = {
        "odd": torch.randn(3, generator=generator).half(),  # 6 bytes: what follows is not aligned to 4
        "f32": torch.randn(5, 7, generator=generator),
        "bf16": torch.randn(4, 3, generator=generator).bfloat16(),
    }
    path = tmp_path / "m.safetensors"
    save_file(tensors, path)
    return card_of(dict(read_safetensors_header(path).tensors), path), tensors


def test_safetensors_values_and_dtypes(stored: tuple[ModelCard, dict[str, torch.Tensor]]) -> None:
    card, tensors = stored
    with WeightReader(card) as reader:
        for name, expected in tensors.items():
            found = reader.tensor(name)
            assert found.dtype == expected.dtype
            assert torch.equal(found, expected)
            assert torch.equal(reader.tensor(name, torch.bfloat16), expected.bfloat16())


def test_a_start_that_is_not_aligned(tmp_path: Path) -> None:
    path = tmp_path / "m.bin"
    values = np.arange(6, dtype=np.float32)
    path.write_bytes(b"x" + values.tobytes())
    card = card_of({"t": TensorInfo("t", "F32", (2, 3), 24, path, 1)}, path)
    with WeightReader(card) as reader:
        assert torch.equal(reader.tensor("t"), torch.from_numpy(values).view(2, 3))


def test_gguf_blocks_over_many_chunks(tmp_path: Path) -> None:
    weights = np.random.default_rng(0).normal(size=(300, 1024)).astype(np.float32)  # more than one chunk of 2^18
    packed = gguf.quants.quantize(weights, gguf.GGMLQuantizationType.Q4_1)
    path = tmp_path / "m.gguf"
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tensor("t", packed, raw_dtype=gguf.GGMLQuantizationType.Q4_1)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    expected = torch.from_numpy(gguf.quants.dequantize(packed, gguf.GGMLQuantizationType.Q4_1))
    with WeightReader(card_of(dict(read_gguf_header(path).tensors), path)) as reader:
        torch.testing.assert_close(reader.tensor("t"), expected, atol=1e-6, rtol=1e-6)
        torch.testing.assert_close(reader.tensor("t", torch.bfloat16), expected.bfloat16())


def test_a_tensor_that_is_not_there(stored: tuple[ModelCard, dict[str, torch.Tensor]]) -> None:
    with WeightReader(stored[0]) as reader, pytest.raises(ArtifactError) as refused:
        reader.tensor("nope")
    assert refused.value.reason == "missing_tensor"


@pytest.mark.parametrize("stored_type", ["IQ2_XS", "TQ1_0", "I32"])
def test_types_without_an_unpacker_are_named_with_the_supported_ones(tmp_path: Path, stored_type: str) -> None:
    card = card_of({"t": TensorInfo("t", stored_type, (256,), 84, tmp_path / "none", 0)}, tmp_path)
    with WeightReader(card) as reader, pytest.raises(ArtifactError, match=stored_type) as refused:
        reader.tensor("t")
    assert refused.value.reason == "unsupported_tensor_type"
    assert "Q4_K" in str(refused.value)


@pytest.mark.parametrize("stored_type", ["F8_E4M3", "F8_E5M2"])
def test_float8_without_a_section_that_says_how(tmp_path: Path, stored_type: str) -> None:
    with pytest.raises(ArtifactError, match="no file says how") as refused:
        WeightReader(card_of({"t": TensorInfo("t", stored_type, (256,), 256, tmp_path / "none", 0)}, tmp_path))
    assert refused.value.reason == "quantization_mismatch"


@pytest.mark.parametrize("method", ["mxfp4", "int8", "exl2"])
def test_quantization_methods_that_are_not_built(tmp_path: Path, method: str) -> None:
    with pytest.raises(NotBuiltError, match=f"'{method}'; this version reads awq, bitsandbytes, compressed-tensors, fp8, gptq, modelopt, quark, squeezellm") as refused:
        WeightReader(card_of({}, tmp_path, {"quant_method": method}))
    assert refused.value.reason == "quantization_not_built"


def test_sizes_that_contradict_each_other(stored: tuple[ModelCard, dict[str, torch.Tensor]]) -> None:
    card, _ = stored
    info = card.tensors["f32"]
    wrong = {
        "tensor_size": replace(info, nbytes=info.nbytes - 4),
        "truncated": replace(info, offset=1 << 40),
    }
    for reason, tensor in wrong.items():
        with WeightReader(replace(card, tensors={"f32": tensor})) as reader, pytest.raises(ArtifactError) as refused:
            reader.tensor("f32")
        assert refused.value.reason == reason
