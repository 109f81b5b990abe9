from __future__ import annotations

import pytest

from headway.capacity.device_table import find_device
from headway.capacity.model_table import known_models, shape_of_size
from headway.capacity.quantization_table import Quantization, quantizations
from headway.errors import ConfigError
from tests.capacity.shapes import shape


@pytest.mark.parametrize("form", quantizations().values(), ids=lambda form: form.name)
def test_a_format_has_a_cost_and_who_says_so(form: Quantization) -> None:
    assert form.cost
    assert form.cost_zh
    assert form.source
    assert form.nominal <= form.bits <= form.table_bits or form.table_bits == 16


def test_the_guides_example() -> None:
    """70 billion parameters: 140 GB in 16 bit, 35 GB in 4 bit; and Llama-2-70B as it is."""
    formats = quantizations()
    size, llama = shape_of_size(70_000_000_000), known_models()["llama-2-70b"].shape
    assert formats["bf16"].weight_bytes(size) == 140_000_000_000
    assert formats["awq"].nominal_bytes(size) == 35_000_000_000
    assert formats["bf16"].weight_bytes(llama) == pytest.approx(140e9, rel=0.02)
    assert formats["awq"].nominal_bytes(llama) == pytest.approx(35e9, rel=0.02)
    # TheBloke/Llama-2-70B-AWQ is 36.6 GB: scales, zero points and 16-bit tables are on top of the 4 bits.
    assert formats["awq"].weight_bytes(llama) == pytest.approx(36.6e9, rel=0.005)


def test_tables_stay_as_they_are() -> None:
    found = shape("grouped")
    linear = found.parameters - 2 * 1000 * 64
    assert quantizations()["awq"].weight_bytes(found) == round((linear * (4 + 20 / 128) + 2 * 1000 * 64 * 16) / 8)


@pytest.mark.parametrize(("form", "device", "refused"), [("fp8", "a100", True), ("fp8", "l4", False), ("nvfp4", "h100", True), ("nvfp4", "b200", False), ("fp8", "mi300x", False)])
def test_formats_need_units(form: str, device: str, refused: bool) -> None:
    assert (quantizations()[form].refused_by(find_device(device)) is not None) == refused


# Published counts: the model cards and papers of the models.
@pytest.mark.parametrize(
    ("name", "billions"),
    [("llama-2-7b", 6.738), ("llama-3.1-8b", 8.030), ("llama-3.3-70b", 70.554), ("mixtral-8x7b", 46.703), ("qwen3-30b-a3b", 30.532),
     ("qwen3-235b-a22b", 235.094), ("gpt-oss-20b", 20.915), ("gpt-oss-120b", 116.829), ("deepseek-v3", 671.026), ("gemma-2-9b", 9.242), ("phi-4", 14.660)],
)  # fmt: skip
def test_published_parameter_counts(name: str, billions: float) -> None:
    assert known_models()[name].shape.parameters / 1e9 == pytest.approx(billions, abs=0.001)


def test_a_size_alone_borrows_a_geometry_and_says_so() -> None:
    found = shape_of_size(8_000_000_000)
    assert found.parameters == 8_000_000_000
    assert "llama-3.1-8b" in found.notes[0] or "qwen3-8b" in found.notes[0]
    with pytest.raises(ConfigError):
        shape_of_size(0)
