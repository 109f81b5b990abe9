"""C07, C13 and what only shows when a model is loaded: tensors, quantization, tokenizer, architecture, code. Through `LLM`."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from headway.engine.llm import LLM
from headway.engine.sampling_params import SamplingParams
from headway.errors import HeadwayError
from tests.artifacts.model_files import finish, gguf_writer, write_gguf
from tests.cases.broken_files import POINTER
from tests.cases.tiny_model import save_tiny_model
from tests.quantization.packers import BY_NAME

GREEDY = SamplingParams(temperature=0, max_tokens=4, ignore_eos=True)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("original") / "m"
    save_tiny_model(folder)
    return folder


@pytest.fixture
def model(original: Path, tmp_path: Path) -> Path:
    """A copy that a test may damage."""
    folder = tmp_path / "m"
    folder.mkdir()
    for file in original.iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    return folder


def load(folder: Path, **flags: Any) -> LLM:
    return LLM(str(folder), dtype="float32", max_model_len=64, kv_cache_memory_bytes=1 << 20, **flags)


def refused(folder: Path, **flags: Any) -> HeadwayError:
    with pytest.raises(HeadwayError) as caught:
        load(folder, **flags)
    return caught.value


def edit(folder: Path, name: str = "config.json", **fields: Any) -> None:
    stated = json.loads((folder / name).read_text()) | fields
    (folder / name).write_text(json.dumps({key: value for key, value in stated.items() if value is not None}))


def retensor(folder: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


@dataclass(frozen=True)
class Refused:
    name: str
    reason: str
    says: tuple[str, ...]
    change: Callable[[Path], object]

    def __str__(self) -> str:
        return self.name.replace(" ", "-")


_Q = "model.layers.1.self_attn.q_proj"
REFUSED = (
    Refused("missing tensors", "missing_tensor", ("2 of the tensors", f"{_Q}.weight", "model.norm.weight", "Download the model again"),
            lambda m: retensor(m, lambda t: [t.pop(f"{_Q}.weight"), t.pop("model.norm.weight")])),
    Refused("extra tensor", "unexpected_tensor", ("1 tensors", f"{_Q}.bias", "config.json belongs"),
            lambda m: retensor(m, lambda t: t.update({f"{_Q}.bias": torch.zeros(32)}))),
    Refused("a layer more than the config says", "unexpected_tensor", ("9 tensors", "model.layers.1."), lambda m: edit(m, num_hidden_layers=1)),
    Refused("a layer less than the config says", "missing_tensor", ("model.layers.2.",), lambda m: edit(m, num_hidden_layers=3)),
    Refused("another shape", "tensor_shape", ("[48, 32]", "[64, 32]", "model.safetensors"), lambda m: edit(m, intermediate_size=64)),
    Refused("vocabulary of another model", "tensor_shape", ("model.embed_tokens.weight", "[270, 32]", "[300, 32]"), lambda m: edit(m, vocab_size=300)),
    Refused("unknown architecture", "unsupported_architecture", ("LlamaForCausalLn",), lambda m: edit(m, architectures=["LlamaForCausalLn"])),
    Refused("no architecture", "unsupported_architecture", ("architecture",), lambda m: edit(m, architectures=None)),
    Refused("remote code", "remote_code", ("auto_map", "never run", "NewForCausalLM"),
            lambda m: edit(m, architectures=["NewForCausalLM"], model_type="new", auto_map={"AutoModelForCausalLM": "modeling_new.NewForCausalLM"})),
    Refused("impossible config", "invalid_model_config", ("num_attention_heads",), lambda m: edit(m, num_attention_heads=0)),
    Refused("no tokenizer", "tokenizer_missing", ("looked for tokenizer.json", "tokenizer.model", "--tokenizer"),
            lambda m: [(m / name).unlink() for name in ("tokenizer.json", "tokenizer_config.json") if (m / name).exists()]),
    Refused("tokenizer is a pointer", "lfs_pointer", ("tokenizer.json", "9876543210 bytes"), lambda m: (m / "tokenizer.json").write_bytes(POINTER)),
    Refused("tokenizer is damaged", "tokenizer_invalid", ("tokenizer.json",), lambda m: (m / "tokenizer.json").write_text('{"version": "1.0"')),
    Refused("packed tensors and no word how", "quantization_mismatch", ("is packed, but no file says how", f"{_Q}.qweight"),
            lambda m: retensor(m, lambda t: t.update({f"{_Q}.qweight": torch.zeros(4, 32, dtype=torch.int32)}))),
    Refused("4-bit config and plain tensors", "quantization_mismatch", ("config.json says gptq", "no tensor ends in .qweight"),
            lambda m: edit(m, quantization_config={"quant_method": "gptq", "bits": 4})),
    Refused("unknown quantization", "unknown_quantization", ("'xyz'", "config.json", "awq, awq_marlin"),
            lambda m: edit(m, quantization_config={"quant_method": "xyz"})),
)  # fmt: skip


@pytest.mark.parametrize("row", REFUSED, ids=str)
def test_refused_before_a_weight_is_read(row: Refused, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    row.change(model)
    monkeypatch.setattr("headway.quantization.weight_reader.WeightReader.read_into", None)
    error = refused(model)
    assert error.reason == row.reason, error.message
    for part in row.says:
        assert part in error.message


def test_the_table_can_fail(model: Path) -> None:
    assert len(load(model).generate("abc", GREEDY, use_tqdm=False)[0].outputs[0].token_ids) == 4


# C07: the flag against the config. Only a contradiction is a conflict; where they agree, the tensors decide, and here they are wrong.
_STORED = {"gptq": "gptq", "awq": "awq", "fp8": "fp8", "compressed-tensors": "compressed-tensors", "bitsandbytes": "bitsandbytes"}
_FLAGS = {"gptq": "gptq", "gptq_marlin": "gptq", "awq": "awq", "fp8": "fp8"}
_TENSORS = {"gptq": (".qweight", ".scales"), "awq": (".qweight", ".scales"), "fp8": (".weight_scale",),
            "compressed-tensors": (".weight_packed", ".weight_scale"), "bitsandbytes": (".weight.absmax",)}  # fmt: skip
_STOPS = {"gptq": "packed_part_missing", "awq": "quantization_mismatch", "fp8": "packed_dtype", "compressed-tensors": "invalid_quantization",
          "bitsandbytes": "packed_part_missing"}  # fmt: skip


@pytest.mark.parametrize("flag", [None, *_FLAGS])
@pytest.mark.parametrize("stored", [None, *_STORED, "xyz"])
def test_quantization_flag_against_config(
    stored: str | None, flag: str | None, model: Path, caplog: pytest.LogCaptureFixture
) -> None:
    if stored is not None:
        edit(model, quantization_config={"quant_method": stored, "bits": 4})
        parts = {f"{_Q}{ending}": torch.zeros(4, 32, dtype=torch.int32) for ending in _TENSORS.get(stored, ())}
        retensor(model, lambda tensors: tensors.update(parts))
    if stored is None and flag in (None, "fp8"):
        with caplog.at_level(logging.INFO):
            load(model, quantization=flag)
        assert ("rounded to what fp8 holds" in caplog.text) == (flag == "fp8")
        return
    with caplog.at_level(logging.INFO):
        error = refused(model, **({} if flag is None else {"quantization": flag}))
    if stored is None:
        assert error.reason == "quantization_conflict"
    elif flag is None:
        assert error.reason == _STOPS.get(stored, "unknown_quantization")
        assert stored in error.message or _Q in error.message or "config_groups" in error.message
    elif _FLAGS[flag] == stored:
        assert error.reason == _STOPS[stored]
        assert (f"--quantization {flag} read as {stored}" in caplog.text) == (flag != stored)
    else:
        assert error.reason == "quantization_conflict"
        for part in (stored, flag, "config.json", str(model)):
            assert part in error.message


@pytest.mark.parametrize("flag", [None, "awq", "awq_marlin"])
def test_a_packed_checkpoint_runs_with_the_flag_that_agrees_and_without(flag: str | None, model: Path, caplog: pytest.LogCaptureFixture) -> None:
    case = BY_NAME["awq"]
    stored, weight = case.pack(np.random.default_rng(3), 32, 32)
    plain = torch.from_numpy(np.ascontiguousarray(weight)).float()
    retensor(model, lambda tensors: tensors.update({f"{_Q}.weight": plain}))
    expected = load(model).generate("abc", GREEDY, use_tqdm=False)[0].outputs[0].token_ids
    parts = {f"{_Q}.{ending}": tensor for ending, tensor in stored.items()}
    retensor(model, lambda tensors: (tensors.pop(f"{_Q}.weight"), tensors.update(parts)))
    edit(model, quantization_config=case.claim)
    with caplog.at_level(logging.INFO):
        found = load(model, quantization=flag).generate("abc", GREEDY, use_tqdm=False)[0].outputs[0].token_ids
    assert found == expected
    assert "1 weights are stored as AWQ int4" in caplog.text


def test_a_flag_that_nobody_knows_lists_what_is_known(model: Path) -> None:
    error = refused(model, quantization="gptq_turbo")
    assert error.reason == "unknown_quantization"
    for part in ("gptq_turbo", "--quantization", "gptq_marlin", "compressed-tensors"):
        assert part in error.message


def test_trust_remote_code_is_refused_with_the_reason(model: Path) -> None:
    error = refused(model, trust_remote_code=True)
    assert error.reason == "flag_refused"
    assert "never run" in error.message


# The same for GGUF files, which bring their own tokenizer and configuration.


def _without_tokenizer(path: Path) -> None:
    writer = gguf_writer(path)
    for key in [key for key in writer.kv_data[0] if key.startswith("tokenizer.")]:
        del writer.kv_data[0][key]
    writer.add_tensor("token_embd.weight", np.zeros((50, 32), np.float32))
    finish(writer)


def _damaged_tokenizer(path: Path) -> None:
    writer = gguf_writer(path)
    writer.kv_data[0]["tokenizer.ggml.model"] = gguf.GGUFValue("abacus", gguf.GGUFValueType.STRING)
    writer.add_tensor("token_embd.weight", np.zeros((50, 32), np.float32))
    finish(writer)


@pytest.mark.parametrize(
    ("write", "reason", "says"),
    [
        (_without_tokenizer, "tokenizer_missing", ("tokenizer.ggml", "--tokenizer")),
        (_damaged_tokenizer, "not_built", ("abacus",)),
        (write_gguf, "tokenizer_invalid", ("tokenizer.ggml.merges",)),
    ],
)
def test_a_gguf_file_is_refused_before_a_weight_is_read(
    write: Callable[[Path], object], reason: str, says: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "x.gguf")
    monkeypatch.setattr("headway.quantization.weight_reader.WeightReader.read_into", None)
    error = refused(tmp_path / "x.gguf")
    assert error.reason == reason, error.message
    for part in says:
        assert part in error.message


def test_a_gguf_file_of_an_unknown_architecture_names_it(model: Path, tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "x.gguf", "zoology")
    writer.add_block_count(2)
    writer.add_tensor("token_embd.weight", np.zeros((50, 32), np.float32))
    finish(writer)
    error = refused(tmp_path / "x.gguf", tokenizer=str(model))
    assert error.reason == "not_built"  # the model may run from safetensors, so "unsupported" would say too much
    assert "zoology" in error.message
    assert "safetensors" in error.message


def test_a_gguf_file_that_lacks_tensors_names_them(model: Path, tmp_path: Path) -> None:
    write_gguf(tmp_path / "x.gguf")
    error = refused(tmp_path / "x.gguf", tokenizer=str(model))
    assert error.reason == "missing_tensor"
    for part in ("blk.0.attn_q.weight", str(tmp_path / "x.gguf"), "2 tensors"):
        assert part in error.message


# C13: forms that load


def test_special_tokens_as_objects_lists_of_templates_and_lists_of_ends_load(model: Path) -> None:
    edit(model, "tokenizer_config.json", bos_token={"content": "<bos>", "special": True},
         chat_template=[{"name": "default", "template": "{{ messages[0].content }}"}, {"name": "tool_use", "template": "x"}])  # fmt: skip
    (model / "generation_config.json").write_text('{"eos_token_id": [256, 65, 66]}')
    llm = load(model)
    assert set(llm._engine.tokenizer.eos_ids) >= {256, 65, 66}
    text = llm._engine.tokenizer.render_chat([{"role": "user", "content": "hello"}])
    assert text == "hello"


def test_a_model_without_template_loads_and_refuses_chats_only(model: Path) -> None:
    edit(model, "tokenizer_config.json", chat_template=None)
    (model / "chat_template.jinja").unlink(missing_ok=True)
    llm = load(model)
    assert llm.generate("abc", GREEDY, use_tqdm=False)
    with pytest.raises(HeadwayError) as caught:
        llm.chat([{"role": "user", "content": "hello"}], GREEDY, use_tqdm=False)
    assert caught.value.reason == "chat_template_missing"
    assert "--chat-template" in caught.value.message


def test_a_vocabulary_larger_than_the_matrix_never_samples_beyond_it(model: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The tokenizer has 258 tokens; a model of 200 rows takes no others in and gives no others out."""
    edit(model, vocab_size=200, eos_token_id=199, bos_token_id=1)
    retensor(model, lambda t: t.update({name: t[name][:200].clone() for name in ("model.embed_tokens.weight", "lm_head.weight")}))
    (model / "generation_config.json").unlink(missing_ok=True)
    llm = load(model)
    assert "the tokenizer has 258 tokens and the model 200" in caplog.text
    output = llm.generate({"prompt_token_ids": list(range(20))}, SamplingParams(temperature=2.0, max_tokens=40, ignore_eos=True, seed=1), use_tqdm=False)[0]
    assert max(output.outputs[0].token_ids) < 200
    with pytest.raises(HeadwayError) as caught:
        llm.generate({"prompt_token_ids": [250]}, GREEDY, use_tqdm=False)
    assert caught.value.reason == "token_out_of_vocabulary"


def test_rows_beyond_the_tokenizer_are_never_sampled_as_text(model: Path) -> None:
    """The model has 270 rows, the tokenizer 258 tokens: what the last rows say is no text, and no crash."""
    retensor(model, lambda t: t["lm_head.weight"][260].copy_(torch.from_numpy(np.full(32, 50.0, np.float32))))
    output = load(model).generate("abc", GREEDY, use_tqdm=False)[0].outputs[0]
    assert all(0 <= i < 270 for i in output.token_ids)
