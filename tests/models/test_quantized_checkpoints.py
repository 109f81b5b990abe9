"""Models whose matrices are packed: the same logits and the same text as transformers with the matrices unpacked.

The packers (tests/quantization/packers.py) write the numbers one by one and say what they mean; transformers computes with that.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, CompressedTensorsConfig, FineGrainedFP8Config, GptOssConfig

from headway.artifacts.inspect import inspect
from headway.errors import ArtifactError
from headway.models.fallback.model import FallbackModel
from headway.models.load import load_model
from headway.models.prepared import identity
from tests.models.fallback_models import fallback_model
from tests.models.runs import difference, greedy, in_chunks, tokens
from tests.models.tiny_models import TinyModel
from tests.models.tiny_sizes import SERVED
from tests.quantization.packers import BY_NAME, Case, awq, group, numbers, pack_quantized, packed_tensors

pytestmark = pytest.mark.usefixtures("unrounded")

Tiny = Callable[[str], TinyModel]
TEXT = tokens(3, 40)


def packed(model: TinyModel, case: Case, folder: Path, *, only: str | tuple[str, ...] = "_proj.weight", turned: bool = False) -> TinyModel:
    """`model` with random matrices packed as `case` says, and its twin with the same matrices as they are. `turned`: they are packed
    the other way round."""

    def is_meant(name: str, tensor: torch.Tensor) -> bool:
        return name.endswith(only) and tensor.dim() == 2

    tensors, plain = packed_tensors(load_file(model.folder / "model.safetensors"), case, is_meant, turned=turned)
    folder.mkdir(exist_ok=True)
    config = json.loads((model.folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | {"quantization_config": case.claim}))
    save_file(tensors, folder / "model.safetensors")
    twin = folder / "twin"  # in a file, because transformers has names of its own for experts
    twin.mkdir()
    (twin / "config.json").write_text(json.dumps(config))
    save_file(plain, twin / "model.safetensors", {"format": "pt"})
    oracle = AutoModelForCausalLM.from_pretrained(twin, dtype=torch.float32, attn_implementation="eager").eval()
    return TinyModel(case.name, folder, oracle)


# One of every kernel of reading; all the others are compared number by number in tests/quantization.
@pytest.mark.parametrize(
    "name",
    ["awq", "gptq 4 bit", "gptq 4 bit act-order", "gptq 3 bit", "gptq 8 bit", "gptq v2", "packed 4 bit zero points", "packed 4 bit act-order",
     "int8 by output", "float8 by output", "nvfp4", "mxfp4", "fp8 one scale", "fp8 blocks", "squeezellm 3 bit outliers", "nf4 twice"],
)  # fmt: skip
def test_the_same_text_as_transformers_with_unpacked_weights(tiny: Tiny, name: str, tmp_path: Path) -> None:
    model = packed(tiny("qwen2"), BY_NAME[name], tmp_path)
    ours = load_model(inspect(str(tmp_path)), torch.float32, implementation="vllm")
    assert difference(in_chunks(ours, TEXT, 23), model.logits(TEXT)) < 2e-4
    assert greedy(ours, TEXT, 12, never=2) == model.greedy(TEXT, 12)


# transformers cannot unpack blocks that do not divide the matrix.
_EVEN_BLOCKS = Case(
    "fp8 even blocks", {"quant_method": "fp8", "weight_block_size": [16, 32], "activation_scheme": "dynamic"},
    numbers(torch.float8_e4m3fn, (16, 32), "weight_scale_inv"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("case", "settings"),
    [(_EVEN_BLOCKS, lambda: FineGrainedFP8Config(dequantize=True)), (BY_NAME["int8 by output"], lambda: CompressedTensorsConfig(dequantize=True)),
     (BY_NAME["float8 by output"], lambda: CompressedTensorsConfig(dequantize=True))],
)  # fmt: skip
def test_the_same_logits_as_transformers_reading_the_same_file(tiny: Tiny, case: Case, settings: Callable[[], Any], tmp_path: Path) -> None:
    packed(tiny("smollm"), case, tmp_path)
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32, attn_implementation="eager", quantization_config=settings())
    with torch.no_grad():
        logits = theirs.eval()(torch.tensor([TEXT])).logits[0].float()
    assert difference(in_chunks(load_model(inspect(str(tmp_path)), torch.float32), TEXT, 40), logits) < 2e-4


def test_fused_projections(tiny: Tiny, tmp_path: Path) -> None:
    """Phi-3 stores queries, keys and values as one matrix."""
    model = packed(tiny("phi3"), BY_NAME["gptq 4 bit"], tmp_path)
    ours = load_model(inspect(str(tmp_path)), torch.float32, context_length=SERVED)
    assert difference(in_chunks(ours, TEXT, 40), model.logits(TEXT)) < 2e-4


def test_a_packed_head(tiny: Tiny, tmp_path: Path) -> None:
    model = packed(tiny("mistral"), BY_NAME["gptq 4 bit"], tmp_path, only="lm_head.weight")
    ours = load_model(inspect(str(tmp_path)), torch.float32)
    assert difference(in_chunks(ours, TEXT, 40), model.logits(TEXT)) < 2e-4


@pytest.mark.parametrize(
    ("name", "ending", "expert"),
    [("qwen3_moe", "_proj.weight", "mlp.experts.5.down_proj"), ("mixtral", (".w1.weight", ".w2.weight", ".w3.weight"), "block_sparse_moe.experts.5.w2")],
)
@pytest.mark.parametrize("form", ["awq", "gptq"])
def test_packed_experts(tiny: Tiny, name: str, ending: str | tuple[str, ...], expert: str, form: str, tmp_path: Path) -> None:
    case = Case("awq", {**BY_NAME["awq"].claim, "group_size": 16}, awq(16)) if form == "awq" else BY_NAME["gptq 4 bit act-order"]
    model = packed(tiny(name), case, tmp_path / "packed", only=ending)
    assert f"model.layers.0.{expert}.qweight" in load_file(tmp_path / "packed" / "model.safetensors")
    ours = load_model(inspect(str(tmp_path / "packed")), torch.float32, implementation="vllm")
    assert difference(in_chunks(ours, TEXT, 40), model.logits(TEXT)) < 2e-4


def test_the_log_says_once_what_happens(tiny: Tiny, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    packed(tiny("smollm"), BY_NAME["awq"], tmp_path)
    with caplog.at_level(logging.INFO):
        load_model(inspect(str(tmp_path)), torch.bfloat16)
    (line,) = [record.message for record in caplog.records if "unpacked" in record.message]
    assert line.startswith("21 weights are stored as AWQ int4, groups of 32; they are unpacked to torch.bfloat16")


def test_prepared_weights_follow_from_every_part(tiny: Tiny, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scales in another file that changes are noticed; what was prepared is used otherwise."""
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(identity, "SMALLEST_BYTES", 1)
    folder = tmp_path / "m"
    packed(tiny("smollm"), BY_NAME["gptq 4 bit"], folder)
    first = in_chunks(load_model(inspect(str(folder)), torch.float32), TEXT, 40)
    assert torch.equal(in_chunks(load_model(inspect(str(folder)), torch.float32), TEXT, 40), first)
    assert len(list((tmp_path / "cache").rglob("*.safetensors"))) == 1
    tensors = load_file(folder / "model.safetensors")
    scales = {name: tensor for name, tensor in tensors.items() if name.endswith(".scales")}
    (folder / "model.safetensors").unlink()
    save_file({name: tensor for name, tensor in tensors.items() if name not in scales}, folder / "model-00001-of-00002.safetensors")
    for factor in (1, 2):
        save_file({name: tensor * factor for name, tensor in scales.items()}, folder / "model-00002-of-00002.safetensors")
        places = {name: f"model-0000{2 if name in scales else 1}-of-00002.safetensors" for name in tensors}
        (folder / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": places}))
        again = in_chunks(load_model(inspect(str(folder)), torch.float32), TEXT, 40)
        assert torch.equal(again, first) == (factor == 1)
    assert len(list((tmp_path / "cache").rglob("*.safetensors"))) == 3


def test_biases_of_zeros_that_tools_add(tiny: Tiny, tmp_path: Path) -> None:
    model = packed(tiny("smollm"), BY_NAME["gptq 4 bit"], tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    name = "model.layers.0.mlp.up_proj.bias"
    save_file(tensors | {name: torch.zeros(96, dtype=torch.float16)}, tmp_path / "model.safetensors")
    ours = load_model(inspect(str(tmp_path)), torch.float32)
    assert difference(in_chunks(ours, TEXT, 40), model.logits(TEXT)) < 2e-4
    save_file(tensors | {name: torch.ones(96, dtype=torch.float16)}, tmp_path / "model.safetensors")
    with pytest.raises(ArtifactError) as refused:
        load_model(inspect(str(tmp_path)), torch.float32)
    assert refused.value.reason == "unexpected_tensor"


def test_a_matrix_of_another_size_than_the_configuration_says(tiny: Tiny, tmp_path: Path) -> None:
    packed(tiny("smollm"), BY_NAME["awq"], tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"intermediate_size": 64}))
    with pytest.raises(ArtifactError) as refused:
        load_model(inspect(str(tmp_path)), torch.float32)
    assert refused.value.reason == "tensor_shape"


@pytest.mark.parametrize("turned", [True, False])
def test_matrices_that_the_model_has_transposed(tiny: Tiny, turned: bool, tmp_path: Path) -> None:
    """GPT-2 has [in, out]. Tools for GPTQ turn what they pack, others pack it as it is; square matrices do not show which."""
    case = BY_NAME["gptq 4 bit act-order" if turned else "packed 4 bit"]
    model = packed(tiny("gpt2"), case, tmp_path, only=("c_fc.weight", "c_proj.weight", "c_attn.weight"), turned=turned)
    ours = load_model(inspect(str(tmp_path)), torch.float32, implementation="vllm")
    assert difference(in_chunks(ours, TEXT, 40), model.logits(TEXT)) < 2e-4


def test_transposed_matrices_of_which_nobody_knows_the_way_round_are_refused(tiny: Tiny, tmp_path: Path) -> None:
    packed(tiny("gpt2"), BY_NAME["gptq 4 bit"], tmp_path, only="attn.c_proj.weight")
    with pytest.raises(ArtifactError) as refused:
        load_model(inspect(str(tmp_path)), torch.float32)
    assert refused.value.reason == "packed_shape"
    assert "way round" in refused.value.message


def test_fused_projections_in_an_order_of_their_own(tiny: Tiny, tmp_path: Path) -> None:
    """Falcon stores the queries of every key head with its key and its value."""
    model = packed(tiny("falcon_40b"), BY_NAME["packed 4 bit zero points"], tmp_path, only=("query_key_value.weight", "dense.weight", "_4h.weight", "_h.weight"))
    assert any(name.endswith("query_key_value.weight_packed") for name in load_file(tmp_path / "model.safetensors"))
    ours = load_model(inspect(str(tmp_path)), torch.float32, implementation="vllm")
    assert difference(in_chunks(ours, TEXT, 40), model.logits(TEXT)) < 2e-4


# ---- models of transformers --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["awq", "gptq 4 bit", "packed 4 bit", "int8 by output", "float8 by output", "nvfp4", "modelopt nvfp4", "llm.int8"])
def test_models_of_transformers_get_unpacked_weights(tiny: Tiny, case: str, tmp_path: Path) -> None:
    model = packed(tiny("smollm"), BY_NAME[case], tmp_path)
    ours = load_model(inspect(str(tmp_path)), torch.float32, implementation="transformers")
    assert isinstance(ours, FallbackModel)
    assert difference(in_chunks(ours, TEXT, 23), model.logits(TEXT)) < 2e-4


@pytest.mark.parametrize("name", ["olmo3", "qwen2_moe", "deepseek3"])
def test_architectures_that_only_transformers_has(name: str, tmp_path: Path) -> None:
    """Experts are separate in the file and one tensor in transformers."""
    case = Case("int4", group("pack-quantized", {"num_bits": 4, "type": "int", "strategy": "group", "group_size": 8}), pack_quantized(4, 8))
    model = packed(fallback_model(name, tmp_path / "plain"), case, tmp_path / "packed")
    ours = load_model(inspect(str(tmp_path / "packed")), torch.float32)
    assert isinstance(ours, FallbackModel)
    assert difference(in_chunks(ours, TEXT, 40), model.logits(TEXT)) < 2e-4


def test_zeros_and_leftovers_in_models_of_transformers(tiny: Tiny, tmp_path: Path) -> None:
    model = packed(tiny("smollm"), BY_NAME["gptq 4 bit"], tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    name = "model.layers.0.mlp.up_proj.bias"
    save_file(tensors | {name: torch.zeros(96), "model.rotary_emb.position_ids": torch.arange(4)}, tmp_path / "model.safetensors")
    ours = load_model(inspect(str(tmp_path)), torch.float32, implementation="transformers")
    assert difference(in_chunks(ours, TEXT, 40), model.logits(TEXT)) < 2e-4
    save_file(tensors | {name: torch.ones(96)}, tmp_path / "model.safetensors")
    with pytest.raises(ArtifactError) as refused:
        load_model(inspect(str(tmp_path)), torch.float32, implementation="transformers")
    assert refused.value.reason == "unexpected_tensor"


def test_a_model_that_runs_nowhere_is_refused_for_what_it_is(tmp_path: Path) -> None:
    """gpt-oss stores its experts as blocks of mxfp4, and has attention sinks, which no backend here has."""
    config = GptOssConfig(
        vocab_size=160, hidden_size=64, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=16,
        num_local_experts=4, num_experts_per_tok=2, sliding_window=16, architectures=["GptOssForCausalLM"],
    )  # fmt: skip
    settings = {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]}
    (tmp_path / "config.json").write_text(json.dumps(config.to_dict() | {"quantization_config": settings}))
    experts = "model.layers.0.mlp.experts"
    blocks, scales = torch.zeros(4, 128, 2, 16, dtype=torch.uint8), torch.full((4, 128, 2), 127, dtype=torch.uint8)
    save_file({f"{experts}.gate_up_proj_blocks": blocks, f"{experts}.gate_up_proj_scales": scales}, tmp_path / "model.safetensors")
    with pytest.raises(ArtifactError, match="attention sinks") as refused:
        load_model(inspect(str(tmp_path)), torch.float32)
    assert refused.value.reason == "unsupported_architecture"
