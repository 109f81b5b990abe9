"""Encoders whose matrices are packed: the hidden states of transformers with the matrices unpacked."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from headway.artifacts.model_cards import card_of_path
from headway.errors import ArtifactError
from headway.kernels.packed_batch import pack
from headway.models.encoders.load import load_encoder
from headway.models.encoders.native_encoder import NativeEncoder
from headway.models.encoders.plan import plan_encoder
from headway.models.encoders.transformers_encoder import TransformersEncoder
from headway.quantization.stored_format import stored_format
from tests.models.encoders.packed_encoders import packed_encoder
from tests.models.encoders.rows import part, random_rows
from tests.models.encoders.tiny_encoders import FALLBACK, MakeEncoder
from tests.quantization.packers import BY_NAME, Case, awq, gptq, numbers, pack_quantized

ROWS = random_rows()
SMALL = {  # groups that divide the narrow matrices
    "awq": Case("awq", {**BY_NAME["awq"].claim, "group_size": 16}, awq(16)),
    "gptq": Case("gptq", {**BY_NAME["gptq 4 bit act-order"].claim, "group_size": 16}, gptq(4, 16, reordered=True)),
    "int4": Case("int4", BY_NAME["packed 4 bit act-order"].claim, pack_quantized(4, 16, reordered=True)),
    "int8": BY_NAME["int8 by output"],
    "fp8": BY_NAME["float8 by output"],
    "nvfp4": BY_NAME["nvfp4"],
    "llm.int8": BY_NAME["llm.int8"],
    "blocks": Case("blocks", {"quant_method": "fp8", "weight_block_size": [16, 16]}, numbers(torch.float8_e4m3fn, (16, 16), "weight_scale_inv")),
}


@pytest.mark.parametrize(
    ("name", "form"),
    [("bert", "int4"), ("bert", "awq"), ("roberta", "gptq"), ("xlm-roberta", "int8"), ("distilbert", "fp8"), ("mpnet", "nvfp4"), ("deberta-v3", "int4"),
     ("deberta-v2", "int8"), ("modernbert", "gptq"), ("modernbert", "nvfp4"), ("mmbert-32k", "blocks"), ("camembert", "llm.int8"),
     ("electra", "int4"), ("albert", "int8"), ("nomic-bert", "awq")],
)  # fmt: skip
def test_hidden_states_are_those_of_unpacked_matrices(make: MakeEncoder, name: str, form: str, tmp_path: Path) -> None:
    oracle = packed_encoder(make(name), SMALL[form], tmp_path)
    encoder = load_encoder(oracle.folder, torch.float32)
    assert isinstance(encoder, TransformersEncoder if name in FALLBACK else NativeEncoder)
    batch = pack(ROWS)
    found = encoder.encode(batch).last
    for number, row in enumerate(ROWS):
        assert (part(found, batch, number) - oracle.states(row)[-1]).abs().max() <= 1e-4


def test_the_plan_counts_weights_unpacked_and_names_the_format(make: MakeEncoder, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    dense = plan_encoder(card_of_path(make("bert").folder, "dense"))
    packed = packed_encoder(make("bert"), SMALL["int4"], tmp_path)
    plan = plan_encoder(card_of_path(packed.folder, "packed"))
    assert plan.parameters == dense.parameters
    assert stored_format(plan.card.tensors.values()).title == "compressed-tensors int4, groups of 16, reordered"
    with caplog.at_level(logging.INFO):
        load_encoder(packed.folder, torch.bfloat16)
    assert [line for line in caplog.messages if "they are unpacked to torch.bfloat16" in line]


def test_a_section_that_belongs_to_other_weights(make: MakeEncoder, tmp_path: Path) -> None:
    packed_encoder(make("bert"), SMALL["gptq"], tmp_path)
    (tmp_path / "model.safetensors").write_bytes((make("bert").folder / "model.safetensors").read_bytes())
    with pytest.raises(ArtifactError, match="no tensor ends in") as refused:
        load_encoder(tmp_path, torch.float32)
    assert refused.value.reason == "quantization_mismatch"


def test_biases_of_zeros_that_tools_add(make: MakeEncoder, tmp_path: Path) -> None:
    """ModernBERT has none."""
    packed_encoder(make("modernbert"), SMALL["gptq"], tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    save_file(tensors | {"layers.0.attn.Wo.bias": torch.zeros(32), "layers.0.mlp.Wo.bias": torch.ones(32)}, tmp_path / "model.safetensors")
    assert plan_encoder(card_of_path(tmp_path, "zeros")).remaining == ("layers.0.mlp.Wo.bias",)
