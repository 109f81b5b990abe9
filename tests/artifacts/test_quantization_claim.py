from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from headway.artifacts.card import ModelCard
from headway.artifacts.inspect import inspect
from headway.artifacts.quantization_claim import check_claim, choose_quantization
from headway.errors import ArtifactError, ConfigError
from tests.artifacts.model_files import LLAMA_CONFIG, write_folder, write_gguf


def _card(folder: Path, claim: dict[str, Any] | None) -> ModelCard:
    config = LLAMA_CONFIG if claim is None else {**LLAMA_CONFIG, "quantization_config": claim}
    return inspect(str(write_folder(folder, config=config)))


def test_claim_of_the_config_and_of_older_side_files(tmp_path: Path) -> None:
    card = _card(tmp_path / "a", {"quant_method": "gptq", "bits": 4})
    assert card.quantization == {"quant_method": "gptq", "bits": 4, "source": "config.json"}
    folder = write_folder(tmp_path / "b")
    (folder / "quantize_config.json").write_text('{"bits": 4, "group_size": 128}')
    assert inspect(str(folder)).quantization == {
        "quant_method": "gptq",
        "bits": 4,
        "group_size": 128,
        "source": "quantize_config.json",
    }
    (folder / "quantize_config.json").rename(folder / "quant_config.json")
    assert (inspect(str(folder)).quantization or {})["quant_method"] == "awq"
    (folder / "quant_config.json").write_text('{"wbits": 4}')
    assert (inspect(str(folder)).quantization or {})["quant_method"] == "squeezellm"
    (folder / "quant_config.json").unlink()
    section = {"quant_algo": "NVFP4", "group_size": 16, "exclude_modules": ["lm_head"]}
    (folder / "hf_quant_config.json").write_text(json.dumps({"producer": {"name": "modelopt"}, "quantization": section}))
    assert inspect(str(folder)).quantization == {"quant_method": "modelopt", **section, "source": "hf_quant_config.json"}


def test_claim_without_packed_tensors_is_a_problem(tmp_path: Path) -> None:
    assert any(
        "no tensor ends in .qweight" in problem
        for problem in _card(tmp_path, {"quant_method": "gptq", "bits": 4}).problems
    )


def test_packed_tensors_without_claim_are_a_problem_and_with_it_are_counted_unpacked(tmp_path: Path) -> None:
    packed = {
        "l.qweight": np.zeros((8, 16), np.int32),
        "l.scales": np.zeros((1, 16), np.float16),
        "l.qzeros": np.zeros((1, 2), np.int32),
    }
    folder = write_folder(tmp_path)
    save_file(packed, folder / "model.safetensors")
    assert any("no file says how" in problem for problem in inspect(str(folder)).problems)
    (folder / "quantize_config.json").write_text('{"bits": 4}')
    card = inspect(str(folder))
    assert card.parameters == 64 * 16
    assert card.problems == ()


@pytest.mark.parametrize(
    ("claim", "flag", "method", "online"),
    [
        (None, None, None, False),
        (None, "fp8", "fp8", True),
        ("gptq", None, "gptq", False),
        ("gptq", "gptq_marlin", "gptq", False),
        ("awq", "awq_marlin", "awq", False),
        ("compressed-tensors", "compressed-tensors", "compressed-tensors", False),
    ],
)
def test_flag_and_claim_that_agree(
    tmp_path: Path, claim: str | None, flag: str | None, method: str | None, online: bool
) -> None:
    card = _card(tmp_path, None if claim is None else {"quant_method": claim})
    choice = choose_quantization(card, flag)
    assert (choice.method, choice.online) == (method, online)
    assert (choice.note is not None) == (flag is not None and claim is not None and flag != claim)


@pytest.mark.parametrize(
    ("claim", "flag", "reason"),
    [
        ("gptq", "awq", "quantization_conflict"),
        ("fp8", "gptq", "quantization_conflict"),
        ("xyz", "fp8", "quantization_conflict"),
        (None, "gptq", "quantization_conflict"),
        (None, "nonsense", "unknown_quantization"),
        ("xyz", None, "unknown_quantization"),
    ],
)
def test_flag_and_claim_that_conflict(tmp_path: Path, claim: str | None, flag: str | None, reason: str) -> None:
    card = _card(tmp_path, None if claim is None else {"quant_method": claim})
    with pytest.raises(ConfigError) as caught:
        choose_quantization(card, flag)
    assert caught.value.reason == reason
    assert flag is None or flag in caught.value.message
    if claim:
        assert claim in caught.value.message
        assert "config.json" in caught.value.message


def test_gguf_decides_for_itself(tmp_path: Path) -> None:
    card = inspect(str(write_gguf(tmp_path / "m.gguf")))
    packed = replace(card, quantization={"quant_method": "gguf", "source": "m.gguf"})
    assert choose_quantization(packed, "gguf").method == "gguf"
    with pytest.raises(ConfigError):
        choose_quantization(packed, "fp8")


def test_a_gguf_file_of_plain_numbers_is_a_gguf_file(tmp_path: Path) -> None:
    card = inspect(str(write_gguf(tmp_path / "m.gguf")))
    assert card.quantization is None
    assert choose_quantization(card, "gguf").method == "gguf"
    with pytest.raises(ConfigError, match=r"m\.gguf") as caught:
        choose_quantization(card, "fp8")
    assert caught.value.reason == "quantization_conflict"


def test_tensors_that_are_not_what_the_config_claims_are_refused(tmp_path: Path) -> None:
    card = _card(tmp_path, {"quant_method": "awq", "bits": 4})
    with pytest.raises(ArtifactError, match="no tensor ends in") as caught:
        check_claim(card)
    assert caught.value.reason == "quantization_mismatch"
    check_claim(replace(card, quantization=None))
