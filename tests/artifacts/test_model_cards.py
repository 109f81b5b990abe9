from __future__ import annotations

import json
from pathlib import Path

import gguf
import numpy as np
import pytest

from headway.artifacts.inspect import inspect
from headway.errors import ArtifactError
from tests.artifacts.model_files import LLAMA_CONFIG, finish, gguf_writer, write_folder, write_gguf


def test_card_of_a_folder(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "m", shards=2)
    (folder / "generation_config.json").write_text('{"eos_token_id": [1, 2]}')
    (folder / "README.md").write_text("---\nlicense: mit\ntags: [a]\n---\n# A model\n")
    (folder / "chat_template.jinja").write_text("{{ messages }}")
    card = inspect(str(folder))
    assert (card.format, card.architecture, card.model_type) == ("safetensors", "LlamaForCausalLM", "llama")
    assert card.config == LLAMA_CONFIG
    assert card.generation_config == {"eos_token_id": [1, 2]}
    assert card.parameters == 50 * 32 + 2 * 32 * 32 + 32
    assert dict(card.dtype_bytes) == {"F32": 4 * (50 * 32 + 32), "F16": 2 * 2 * 32 * 32}
    assert card.weight_bytes == sum(card.dtype_bytes.values())
    assert (card.tokenizer, card.chat_template, card.licence, card.context_length) == (
        "tokenizer.json",
        True,
        "mit",
        128,
    )
    assert (card.quantization, card.missing_files, card.problems, card.revision) == (None, (), (), None)
    assert len(card.files) == 2


def test_card_of_a_gguf_file_and_of_the_folder_around_it(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    writer = gguf_writer(path)
    weight = np.random.default_rng(0).standard_normal((50, 32)).astype(np.float32)
    writer.add_tensor(
        "token_embd.weight",
        gguf.quantize(weight, gguf.GGMLQuantizationType.Q8_0),
        raw_dtype=gguf.GGMLQuantizationType.Q8_0,
    )
    writer.add_tensor("output_norm.weight", np.ones(32, np.float32))
    writer.add_license("apache-2.0")
    writer.add_chat_template("{{ messages }}")
    finish(writer)
    for reference in (path, tmp_path):
        card = inspect(str(reference))
        assert (card.format, card.path, card.architecture) == ("gguf", path, "LlamaForCausalLM")
        assert dict(card.dtype_bytes) == {"Q8_0": 50 * 34, "F32": 128}
        assert card.parameters == 50 * 32 + 32
        assert card.quantization is not None
        assert (card.quantization["quant_method"], card.quantization["types"]) == ("gguf", ["Q8_0"])
        assert (card.tokenizer, card.chat_template, card.licence, card.context_length) == (
            "gguf",
            True,
            "apache-2.0",
            256,
        )
        assert card.tensors["token_embd.weight"].shape == (50, 32)


def test_unquantized_gguf_has_no_quantization(tmp_path: Path) -> None:
    assert inspect(str(write_gguf(tmp_path / "m.gguf"))).quantization is None


def test_a_gguf_ignores_a_config_beside_it(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text('{"quantization_config": {"quant_method": "fp8"}}')
    assert inspect(str(write_gguf(tmp_path / "m.gguf"))).quantization is None


def test_two_gguf_models_in_a_folder_must_be_told_apart(tmp_path: Path) -> None:
    write_gguf(tmp_path / "a.gguf")
    write_gguf(tmp_path / "b.gguf")
    with pytest.raises(ArtifactError, match=r"a\.gguf, b\.gguf") as caught:
        inspect(str(tmp_path))
    assert caught.value.reason == "ambiguous_model"


def test_a_directory_named_like_a_gguf_file(tmp_path: Path) -> None:
    write_folder(tmp_path / "x.gguf")
    with pytest.raises(ArtifactError) as caught:
        inspect(str(tmp_path / "x.gguf"))
    assert caught.value.reason == "is_directory"


def test_remote_code_is_a_problem_and_is_not_run(tmp_path: Path) -> None:
    config = {**LLAMA_CONFIG, "auto_map": {"AutoModelForCausalLM": "modeling.Evil"}}
    folder = write_folder(tmp_path / "m", config=config)
    (folder / "modeling.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    card = inspect(str(folder))
    assert "never runs it" in card.problems[0]
    assert not (tmp_path / "ran").exists()


def test_missing_tokenizer_and_architecture_are_problems(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "m", config={"hidden_size": 8})
    (folder / "tokenizer.json").unlink()
    card = inspect(str(folder))
    assert card.tokenizer is None
    assert any("no tokenizer" in problem for problem in card.problems)
    assert any("names no architecture" in problem for problem in card.problems)


def test_dangling_side_files_are_listed(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "m")
    (folder / "tokenizer.model").symlink_to(tmp_path / "blob")
    assert inspect(str(folder)).missing_files == ("tokenizer.model",)


def test_missing_and_damaged_config(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "m")
    for content, reason in (
        ("{", "invalid_json"),
        ("[]", "invalid_json"),
        ("[" * 100_000, "invalid_json"),
        ("<!DOCTYPE html>", "html_page"),
    ):
        (folder / "config.json").write_text(content)
        with pytest.raises(ArtifactError) as caught:
            inspect(str(folder))
        assert caught.value.reason == reason
        assert "config.json" in caught.value.message
    (folder / "config.json").unlink()
    with pytest.raises(ArtifactError) as caught:
        inspect(str(folder))
    assert caught.value.reason == "missing_config"


def test_a_single_weight_file_points_to_its_folder(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "m")
    with pytest.raises(ArtifactError) as caught:
        inspect(str(folder / "model.safetensors"))
    assert caught.value.reason == "not_a_model"
    assert str(folder) in (caught.value.fix or "")


def test_trailing_bytes_of_a_gguf_are_a_problem(tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "m.gguf")
    path.write_bytes(path.read_bytes() + bytes(100))
    assert any("100 bytes follow" in problem for problem in inspect(str(path)).problems)


def test_template_inside_the_tokenizer_config(tmp_path: Path) -> None:
    folder = write_folder(tmp_path / "m")
    assert inspect(str(folder)).chat_template is False
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": "{{ messages }}"}))
    assert inspect(str(folder)).chat_template is True
