"""What is written, read by others: the compressed-tensors library number by number, transformers for whole answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gguf
import pytest
import torch
from compressed_tensors.compressors import BaseCompressor
from compressed_tensors.quantization import QuantizationConfig
from safetensors.torch import load_file, save_file
from tokenizers import AddedToken, decoders, models, pre_tokenizers
from tokenizers import Tokenizer as Backend
from transformers import AutoModelForCausalLM, AutoTokenizer, CompressedTensorsConfig

from headway.artifacts.inspect import inspect
from headway.compression.method import METHODS
from headway.models.load import load_model
from headway.quantization.weight_reader import WeightReader
from tests.compression.tiny_runs import compressed
from tests.engine.tiny_folder import complete_tiny_model
from tests.models import tiny_gguf
from tests.models.runs import difference, greedy, in_chunks, tokens
from tests.models.tiny_models import tiny_model
from tests.models.tiny_sizes import SERVED

TEXT = tokens(3, 40)


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny Llama in float32, whose groups have float32 scales: no reader rounds anything."""
    root = tmp_path_factory.mktemp("checkpoints")
    source = complete_tiny_model("smollm", root).folder
    (source / "generation_config.json").write_text(json.dumps({"eos_token_id": 2, "temperature": 0.7}))
    (source / "chat_template.jinja").write_text("{% for m in messages %}{{ m.content }}{% endfor %}")
    (source / "LICENSE").write_text("whose it is")
    (source / "README.md").write_text("about the dense model")
    for method in METHODS:
        compressed(source, method, root / method)
    return root


def tensors(folder: Path) -> dict[str, torch.Tensor]:
    return {name: tensor for file in sorted(folder.glob("*.safetensors")) for name, tensor in load_file(file).items()}


@pytest.mark.parametrize("method", METHODS)
def test_the_library_unpacks_the_same_numbers(folders: Path, method: str) -> None:
    config = QuantizationConfig(**json.loads((folders / method / "config.json").read_text())["quantization_config"])
    [scheme] = config.config_groups.values()
    stored = tensors(folders / method)
    modules = {name.removesuffix(".weight_scale") for name in stored if name.endswith(".weight_scale")}
    assert len(modules) == 3 * 7
    assert "lm_head" in config.ignore
    with WeightReader(inspect(str(folders / method))) as reader:
        for module in modules:
            parts = {name.removeprefix(f"{module}."): tensor for name, tensor in stored.items() if name.startswith(f"{module}.")}
            library = BaseCompressor.get_value_from_registry(config.format).decompress(parts, scheme)["weight"]
            torch.testing.assert_close(reader.tensor(f"{module}.weight"), library.float(), rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("method", METHODS)
def test_transformers_gives_the_same_answer(folders: Path, method: str) -> None:
    path = folders / method
    theirs = AutoModelForCausalLM.from_pretrained(path, dtype=torch.float32, attn_implementation="eager", quantization_config=CompressedTensorsConfig(dequantize=True)).eval()
    ours = load_model(inspect(str(path)), torch.float32)
    with torch.no_grad():
        logits = theirs(torch.tensor([TEXT])).logits[0].float()
        generated = theirs.generate(torch.tensor([TEXT]), max_new_tokens=12, min_new_tokens=12, do_sample=False)[0, len(TEXT) :].tolist()
    assert difference(in_chunks(ours, TEXT, 23), logits) < 2e-4
    assert greedy(ours, TEXT, 12, never=2) == generated


def test_what_lies_beside_the_weights(folders: Path) -> None:
    path = folders / "awq"
    config = json.loads((path / "config.json").read_text())
    assert config["model_type"] == "llama"
    assert config["torch_dtype"] == "float32"
    assert json.loads((path / "generation_config.json").read_text())["temperature"] == 0.7
    assert AutoTokenizer.from_pretrained(path).encode("abc") == AutoTokenizer.from_pretrained(folders / "smollm").encode("abc")
    assert {"chat_template.jinja", "LICENSE"} <= {file.name for file in path.iterdir()}
    assert not (path / "README.md").exists()
    index = json.loads((path / "model.safetensors.index.json").read_text())
    stored = {file.name: load_file(file) for file in path.glob("*.safetensors")}
    assert {name: file for file, inside in stored.items() for name in inside} == index["weight_map"]
    assert index["metadata"]["total_size"] == sum(tensor.nbytes for inside in stored.values() for tensor in inside.values())
    assert [entry.name for entry in folders.iterdir() if entry.name.endswith(".part")] == []


def test_dense_tensors_stay_as_they_are(folders: Path) -> None:
    original = tensors(folders / "smollm")
    for method in ("int8", "fp8", "int4-g128", "gptq"):
        stored = tensors(folders / method)
        assert all(torch.equal(stored[name], original[name]) for name in original if "norm" in name or "embed" in name)


def test_zero_points_are_stored(folders: Path) -> None:
    name = "model.layers.0.mlp.up_proj"
    assert tensors(folders / "awq")[f"{name}.weight_zero_point"].shape == (96 // 8, 64 // 32)
    assert f"{name}.weight_zero_point" not in tensors(folders / "gptq")


@pytest.mark.parametrize("name", ["qwen3_moe_untied", "mixtral", "falcon_40b", "phi3", "gemma3", "stablelm_parallel"])
@pytest.mark.parametrize("method", ["awq", "gptq"])
def test_other_architectures(name: str, method: str, tmp_path: Path) -> None:
    """Our engine with the checkpoint equals transformers with the same numbers put into the dense model."""
    model = complete_tiny_model(name, tmp_path)
    report = compressed(model.folder, method, tmp_path / "out")
    ours = load_model(inspect(str(tmp_path / "out")), torch.float32, context_length=SERVED)
    expected = _dense_twin(tmp_path / "out", tmp_path / "twin")
    with torch.no_grad():
        logits = expected(torch.tensor([TEXT]), use_cache=False).logits[0].float()
    assert difference(in_chunks(ours, TEXT, 40), logits) < 1e-3
    assert all(0.0 < each["error"] < 0.2 for each in report.layers if ".experts." not in each["module"])
    far = float((logits.log_softmax(-1) - model.logits(TEXT).log_softmax(-1)).abs().mean())
    assert 0.0 < far < 1.2


def _dense_twin(path: Path, twin: Path) -> torch.nn.Module:
    """The checkpoint unpacked by the library and saved dense, in transformers."""
    config = json.loads((path / "config.json").read_text())
    section = QuantizationConfig(**config.pop("quantization_config"))
    [scheme] = section.config_groups.values()
    stored, dense = tensors(path), {}
    for name, tensor in stored.items():
        module, _, ending = name.rpartition(".")
        if ending == "weight_packed":
            parts = {key.removeprefix(f"{module}."): part for key, part in stored.items() if key.startswith(f"{module}.")}
            dense[f"{module}.weight"] = BaseCompressor.get_value_from_registry(section.format).decompress(parts, scheme)["weight"].float().contiguous()
        elif not ending.startswith("weight_"):
            dense[name] = tensor
    twin.mkdir()
    (twin / "config.json").write_text(json.dumps(config))
    save_file(dense, twin / "model.safetensors", {"format": "pt"})
    return AutoModelForCausalLM.from_pretrained(twin, dtype=torch.float32, attn_implementation="eager").eval()


def test_a_gguf_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file of a model gives the checkpoint that its folder gives; the tokenizer comes out of the file."""
    model = tiny_model("smollm", tmp_path)
    words = ["<pad>", "<s>", "</s>", "ab", *sorted(pre_tokenizers.ByteLevel.alphabet())[:156]]
    backend = Backend(models.BPE({word: i for i, word in enumerate(words)}, [("a", "b")]))
    backend.pre_tokenizer, backend.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    backend.add_special_tokens([AddedToken(word, special=True) for word in words[:3]])
    backend.save(str(model.folder / "tokenizer.json"))

    def with_vocabulary(writer: gguf.GGUFWriter, config: Any) -> None:
        writer.add_tokenizer_model("gpt2")
        writer.add_tokenizer_pre("gpt-2")
        writer.add_token_list(words)
        writer.add_token_types([gguf.TokenType.CONTROL] * 3 + [gguf.TokenType.NORMAL] * 157)
        writer.add_token_merges(["a b"])
        writer.add_add_bos_token(False)
        writer.add_chat_template("{{ messages[0].content }}")

    monkeypatch.setitem(tiny_gguf._SETTINGS, "llama", with_vocabulary)
    tiny_gguf.write_gguf(model, tmp_path / "m.gguf")
    compressed(model.folder, "int4-g128", tmp_path / "one")
    compressed(tmp_path / "m.gguf", "int4-g128", tmp_path / "other")
    one, other = tensors(tmp_path / "one"), tensors(tmp_path / "other")
    assert one.keys() == other.keys()
    assert all(torch.equal(one[name], other[name]) for name in one)
    theirs = AutoTokenizer.from_pretrained(tmp_path / "other")
    assert theirs.encode("abc a") == backend.encode("abc a").ids
    assert theirs.chat_template == "{{ messages[0].content }}"
    load_model(inspect(str(tmp_path / "other")), torch.float32)
