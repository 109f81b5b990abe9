"""Every packed format: values, pieces of a matrix, and what is refused. The oracle writes the numbers one by one (packers.py)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from headway.artifacts.card import ModelCard
from headway.artifacts.parameter_count import count_parameters
from headway.artifacts.quantization_claim import READABLE_FORMATS
from headway.artifacts.safetensors_header import read_safetensors_header
from headway.errors import ArtifactError, HeadwayError
from headway.quantization import weight_reader
from headway.quantization.integer_form import integer_form
from headway.quantization.logical_card import FORMATS, logical_card, packed_weights
from headway.quantization.packed_weight import shard
from headway.quantization.weight_reader import WeightReader
from tests.quantization.packers import BY_NAME, CASES, Case, Stored
from tests.quantization.test_weight_reader import card_of

OUT, WIDTH = 192, 160
NAME = "model.layers.0.mlp.up_proj"


def written(case: Case, path: Path, change: Callable[[Stored], None] = lambda stored: None, **claim: object) -> tuple[ModelCard, torch.Tensor]:
    """A file with one packed matrix and a plain one."""
    stored, weight = case.pack(np.random.default_rng(7), OUT, WIDTH)
    change(stored)
    tensors = {f"{NAME}.{ending}": tensor.contiguous() for ending, tensor in stored.items()}
    save_file(tensors | {"model.norm.weight": torch.ones(8)}, path)
    card = card_of(dict(read_safetensors_header(path).tensors), path, {**case.claim, "source": "config.json", **claim})
    return card, torch.from_numpy(np.ascontiguousarray(weight)).float()


def read(card: ModelCard) -> torch.Tensor:
    with WeightReader(card) as reader:
        return reader.tensor(f"{NAME}.weight")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("chunk", [1 << 18, WIDTH])
def test_values(case: Case, chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weight_reader, "_CHUNK_WEIGHTS", chunk)
    card, weight = written(case, tmp_path / "m.safetensors")
    assert count_parameters(card.tensors, card.quantization) == OUT * WIDTH + 8
    plain = logical_card(card)
    assert set(plain.tensors) == {f"{NAME}.weight", "model.norm.weight"}
    assert plain.parameters == OUT * WIDTH + 8
    assert logical_card(plain) is plain
    torch.testing.assert_close(read(card), weight, rtol=1e-6, atol=1e-7)
    torch.testing.assert_close(read(plain), weight, rtol=1e-6, atol=1e-7)


# What has no integers: floats, inputs out of order, blocks of several outputs, groups that do not fill the width.
_FLOATS = ("fp8", "float8", "nf4", "fp4", "nvfp4", "mxfp4", "squeezellm", "act-order", "blocks", "short last")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("chunk", [1 << 18, WIDTH])
def test_integers_mean_the_same(case: Case, chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weight_reader, "_CHUNK_WEIGHTS", chunk)
    card, weight = written(case, tmp_path / "m.safetensors")
    (packed,) = packed_weights(logical_card(card))
    form = integer_form(packed)
    assert (form is None) == any(word in case.name for word in _FLOATS), packed.layout.title
    if form is None:
        return
    with WeightReader(card) as reader:
        chunks = list(reader.integers(packed))
    assert [len(chunk.codes) for chunk in chunks] == ([OUT] if chunk > WIDTH else [64] * 3)
    assert {chunk.form for chunk in chunks} == {form}
    torch.testing.assert_close(torch.cat([chunk.dequantized() for chunk in chunks]), weight, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("case", [case for case in CASES if "one group" not in case.name and case.name != "modelopt fp8 blocks"], ids=lambda case: case.name)
def test_halves_for_two_ranks(case: Case, tmp_path: Path) -> None:
    """Columns of the second rank, and rows of it: what is stored is cut, not the matrix."""
    card, weight = written(case, tmp_path / "m.safetensors")
    (packed,) = packed_weights(logical_card(card))
    parts = stored_parts(card, case)
    layout = packed.layout
    below = layout.dequantize(shard(layout, parts, "out", OUT // 2, OUT), range(OUT // 2, OUT))
    torch.testing.assert_close(below, weight[OUT // 2 :], rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", ["awq", "gptq 4 bit act-order", "gptq 3 bit", "packed 4 bit zero points", "int8 by output", "nvfp4", "mxfp4", "fp8 blocks"])
def test_columns_for_two_ranks(name: str, tmp_path: Path) -> None:
    case = BY_NAME[name]
    card, weight = written(case, tmp_path / "m.safetensors")
    (packed,) = packed_weights(logical_card(card))
    half = 96 if name != "fp8 blocks" else 80
    right = shard(packed.layout, stored_parts(card, case), "in", half, WIDTH)
    if "packed" in name:  # its width is not in the parts that are cut
        assert right["weight_packed"].shape == (OUT, (WIDTH - half) // 8)
        assert right["weight_scale"].shape == (OUT, (WIDTH - half) // 32)
        return
    torch.testing.assert_close(packed.layout.dequantize(right, range(OUT)), weight[:, half:], rtol=1e-6, atol=1e-7)


def test_a_cut_within_a_word_is_refused(tmp_path: Path) -> None:
    card, _ = written(BY_NAME["awq"], tmp_path / "m.safetensors")
    (packed,) = packed_weights(logical_card(card))
    with pytest.raises(ValueError, match="does not begin an entry"):
        shard(packed.layout, stored_parts(card, BY_NAME["awq"]), "out", 4, OUT)


def stored_parts(card: ModelCard, case: Case) -> Stored:
    return case.pack(np.random.default_rng(7), OUT, WIDTH)[0]


def _swap(a: str, b: str) -> Callable[[Stored], None]:
    def change(stored: Stored) -> None:
        stored[a], stored[b] = stored[b], stored[a]

    return change


def _set(name: str, value: Callable[[torch.Tensor], torch.Tensor]) -> Callable[[Stored], None]:
    def change(stored: Stored) -> None:
        stored[name] = value(stored[name]).contiguous()

    return change


def _drop(name: str) -> Callable[[Stored], None]:
    def change(stored: Stored) -> None:
        del stored[name]

    return change


def _nan(scales: torch.Tensor) -> torch.Tensor:
    return scales.float().fill_(float("nan")).to(scales.dtype)


def _nothing(stored: Stored) -> None:
    pass


REFUSED = [
    ("awq", _nothing, {"group_size": 16}, "packed_shape", "10"),
    ("awq", _swap("qweight", "qzeros"), {}, "packed_shape", "qzeros"),
    ("awq", _drop("scales"), {}, "quantization_mismatch", "no .scales tensors"),
    ("awq", _set("qweight", lambda q: q[:-32]), {}, "packed_shape", "[4, 24]"),
    ("awq", _set("scales", _nan), {}, "packed_values", "not numbers"),
    ("awq", _set("scales", lambda s: s.double()), {}, "packed_dtype", "F64"),
    ("awq", _nothing, {"bits": 8}, "quantization_not_built", "8 bits"),
    ("awq", _nothing, {"version": "gemv"}, "quantization_not_built", "gemv"),
    ("awq", _nothing, {"zero_point": False}, "quantization_not_built", "without zero points"),
    ("awq", _nothing, {"bits": "four"}, "invalid_quantization", "four"),
    ("awq", _nothing, {"group_size": 0}, "invalid_quantization", "group_size"),
    ("gptq 4 bit", _nothing, {"bits": 8}, "packed_shape", "qweight"),
    ("gptq 4 bit", _nothing, {"group_size": 64}, "packed_shape", "qzeros"),
    ("gptq 4 bit", _nothing, {"bits": 5}, "quantization_not_built", "5 bits"),
    ("gptq 4 bit", _nothing, {"bits": None}, "invalid_quantization", "bits"),
    ("gptq 4 bit", _nothing, {"checkpoint_format": "marlin"}, "quantization_not_built", "marlin"),
    ("gptq 4 bit", _nothing, {"dynamic": [1]}, "invalid_quantization", "dynamic"),
    ("gptq 4 bit", _nothing, {"dynamic": {"(?=a)": {"bits": 8}}}, "quantization_not_built", "RE2"),
    ("gptq 4 bit", _set("g_idx", lambda g: g + 3), {}, "packed_values", "names group 7"),
    ("gptq 4 bit", _set("g_idx", lambda g: g.flip(0)), {}, "packed_values", "desc_act"),
    ("gptq 4 bit without g_idx", _nothing, {"checkpoint_format": "gptq_v2"}, "packed_values", "checkpoint_format"),
    ("gptq v2 symmetric", _nothing, {"checkpoint_format": "gptq"}, "packed_values", "gptq_v2 as they are"),
    ("packed 4 bit", _set("weight_shape", lambda shape: shape * 2), {}, "packed_shape", "weight_packed"),
    ("packed 4 bit", _drop("weight_shape"), {}, "packed_part_missing", "weight_shape"),
    ("packed 4 bit zero points", _drop("weight_zero_point"), {}, "packed_part_missing", "weight_zero_point"),
    ("packed 4 bit act-order", _set("weight_g_idx", lambda g: g - 1), {}, "packed_values", "weight_g_idx"),
    ("packed 4 bit", _nothing, {"format": "marlin-24"}, "quantization_not_built", "marlin-24"),
    ("packed 4 bit", _nothing, {"sparsity_config": {"format": "sparse-24-bitmask"}}, "quantization_not_built", "sparse"),
    ("packed 4 bit", _nothing, {"transform_config": {"config_groups": {"R1": {}}}}, "quantization_not_built", "rotated"),
    ("packed 4 bit", _nothing, {"config_groups": {}}, "invalid_quantization", "config_groups"),
    ("packed 4 bit", _nothing, {"config_groups": {"a": {"targets": ["re:lm_head"], "weights": {"num_bits": 4}}}}, "invalid_quantization", "targets"),
    ("int8 by output", _set("weight", lambda w: w.int()), {}, "packed_dtype", "I32"),
    ("float8 blocks", _set("weight_scale", lambda s: s.T), {}, "packed_shape", "weight_scale"),
    ("nvfp4", _set("weight_global_scale", lambda s: s * 0), {}, "packed_values", "global scale is 0"),
    ("mxfp4", _set("weight_scale", lambda s: s | 255), {}, "packed_values", "not numbers"),
    ("fp8 one scale", _drop("weight_scale"), {}, "packed_part_missing", "weight_scale"),
    ("fp8 blocks", _nothing, {"weight_block_size": [40, 24]}, "packed_shape", "weight_scale_inv"),
    ("fp8 blocks", _nothing, {"weight_block_size": 128}, "invalid_quantization", "weight_block_size"),
    ("squeezellm 4 bit", _nothing, {"wbits": 3}, "packed_shape", "lookup_table"),
    ("squeezellm 4 bit", _nothing, {"wbits": 5}, "quantization_not_built", "5 bits"),
    ("squeezellm 4 bit outliers", _set("cols", lambda c: c + 1000), {}, "packed_values", "column"),
    ("squeezellm 4 bit outliers", _set("rows", lambda r: r.flip(0)), {}, "packed_values", "rise"),
    ("squeezellm 4 bit outliers", _drop("vals"), {}, "packed_part_missing", "vals"),
    ("nf4", _set("weight.absmax", lambda a: a[1:]), {}, "packed_shape", "absmax"),
    ("nf4", _drop("weight.quant_state.bitsandbytes__nf4"), {}, "packed_part_missing", "quant_state"),
    ("nf4", _set("weight.quant_state.bitsandbytes__nf4", lambda text: text[3:]), {}, "packed_values", "JSON"),
    ("llm.int8", _drop("SCB"), {}, "quantization_mismatch", ".SCB"),
    ("llm.int8", _set("weight_format", lambda f: f + 2), {}, "packed_values", "weight_format is 2"),
    ("modelopt fp8", _nothing, {"quant_algo": "W4A8_AWQ"}, "quantization_not_built", "W4A8_AWQ"),
    ("modelopt nvfp4", _drop("weight_scale_2"), {}, "packed_part_missing", "weight_scale_2"),
    ("modelopt nvfp4", _nothing, {"quant_algo": "FP8"}, "packed_dtype", "U8"),
    ("modelopt nvfp4", _nothing, {"quant_algo": "MIXED_PRECISION"}, "invalid_quantization", "quantized_layers"),
    ("quark fp8", _nothing, {"layer_quant_config": {"*.q_proj": {}}}, "quantization_not_built", "layer_quant_config"),
    ("quark int8", _nothing, {"global_quant_config": {"weight": {"dtype": "int4", "qscheme": "per_group"}}}, "quantization_not_built", "int4"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "change", "claim", "reason", "says"), REFUSED)
def test_refused(
    name: str, change: Callable[[Stored], None], claim: dict[str, object], reason: str, says: str, tmp_path: Path
) -> None:
    card, _ = written(BY_NAME[name], tmp_path / "m.safetensors", change, **claim)
    with pytest.raises(HeadwayError) as refused:
        read(card)
    assert refused.value.reason == reason, refused.value.message
    assert says in refused.value.message


def test_what_is_said_to_be_readable_is() -> None:
    assert set(FORMATS) == READABLE_FORMATS


def test_modules_of_a_gptq_checkpoint_with_settings_of_their_own(tmp_path: Path) -> None:
    eight = BY_NAME["gptq 8 bit"]
    card, weight = written(eight, tmp_path / "m.safetensors", bits=4, dynamic={r"-:.*lm_head": {}, r"+:model\.layers\.\d+\.mlp": {"bits": 8}})
    torch.testing.assert_close(read(card), weight, rtol=1e-6, atol=1e-7)


def test_modules_of_a_modelopt_checkpoint_with_algorithms_of_their_own(tmp_path: Path) -> None:
    for case in ("modelopt nvfp4", "modelopt fp8"):
        layers = {NAME: {"quant_algo": BY_NAME[case].claim["quant_algo"]}, "model.layers.1.mlp.up_proj": {"quant_algo": "FP8"}}
        card, weight = written(BY_NAME[case], tmp_path / "m.safetensors", quant_algo="MIXED_PRECISION", quantized_layers=layers)
        torch.testing.assert_close(read(card), weight, rtol=1e-6, atol=1e-7)
    card, _ = written(BY_NAME["modelopt fp8"], tmp_path / "m.safetensors", quant_algo="MIXED_PRECISION", quantized_layers={NAME: {"quant_algo": "W8A8_SQ"}})
    with pytest.raises(HeadwayError, match="W8A8_SQ") as refused:
        read(card)
    assert refused.value.reason == "quantization_not_built"


def test_a_file_that_ends_within_a_part(tmp_path: Path) -> None:
    card, _ = written(BY_NAME["gptq 4 bit"], tmp_path / "m.safetensors")
    whole = (tmp_path / "m.safetensors").read_bytes()
    (tmp_path / "m.safetensors").write_bytes(whole[: len(whole) - 4000])
    with pytest.raises(ArtifactError) as refused:
        read(card)
    assert refused.value.reason == "truncated"
