"""Sizes, bits and devices, from names, files, configurations and logs."""

from __future__ import annotations

from typing import Any

import pytest

from headway.doctor.evidence.context import Context
from headway.doctor.evidence.log.scan import read_text
from headway.doctor.facts import device as device_facts
from headway.doctor.facts import launch as launch_facts
from headway.doctor.facts.device import Device, capability, device_of
from headway.doctor.facts.launch import launch_of
from headway.doctor.facts.model import Model, model_of


def model(context: dict[str, Any]) -> Model:
    known = Context(context)
    return model_of(known, launch_of(read_text("log.txt", b"", launch_facts.SIGHTS), known))


def device(text: str, context: dict[str, Any] | None = None) -> Device:
    log, known = read_text("log.txt", text.encode(), (*device_facts.SIGHTS, *launch_facts.SIGHTS)), Context(context or {})
    return device_of(log, known, launch_of(log, known))


@pytest.mark.parametrize(
    ("name", "billions"),
    [
        ("Qwen/Qwen2.5-14B-Instruct-AWQ", 14),
        ("Qwen/Qwen3-30B-A3B", 30),
        ("meta-llama/Llama-3.1-8B-Instruct", 8),
        ("HuggingFaceTB/SmolLM2-135M-Instruct", 0.135),
        ("Qwen/Qwen2.5-0.5B", 0.5),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", 46.5),
        ("org/gpt-nameless", None),
    ],
)
def test_parameters_by_name(name: str, billions: float | None) -> None:
    found = model({"model": {"id": name}}).parameters
    assert found == (None if billions is None else pytest.approx(billions * 1e9, rel=0.01))


def test_parameters_by_configuration() -> None:
    # Llama 3.1 8B has 8 030 261 248 parameters, by its model card
    config = {
        "model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8,
        "intermediate_size": 14336, "vocab_size": 128256, "torch_dtype": "bfloat16",
    }  # fmt: skip
    known = model({"model": {"id": "x/other-70B", "config": config}})
    assert known.parameters == 8_030_261_248
    assert known.gib() == pytest.approx(14.96, abs=0.01)


@pytest.mark.parametrize(
    ("name", "method", "bits"),
    [
        ("org/m-7B-AWQ", "awq", 4), ("org/m-GPTQ-Int4", "gptq", 4), ("org/m-w8a8", "w8a8", 8), ("m-q4_k_m.gguf", "q4_k_m", 4),
        ("org/m-7B-FP8", "fp8", 8), ("org/Llama-3-8B-Instruct", "", None), ("org/hawq-7B", "", None),
    ],
)  # fmt: skip
def test_quantization_that_a_name_claims(name: str, method: str, bits: int | None) -> None:
    known = model({"model": {"id": name}})
    assert (known.named, known.named_bits) == (method, bits)


def test_stored_size_prefers_what_is_given_then_headers_then_files() -> None:
    files = [{"name": "model.safetensors", "bytes": 3 << 30}, {"name": "config.json", "bytes": 1 << 30}]
    tensors = [{"name": "a", "dtype": "BF16", "shape": [1 << 20, 1024]}, {"name": "b.qweight", "dtype": "I32", "shape": [1 << 20, 1024]}]
    sizes = [model({"model": section}).stored for section in ({"weights_gib": 9.5, "files": files}, {"tensors": tensors, "files": files}, {"files": files})]
    assert [fact.value for fact in sizes if fact] == [9.5, 6.0, 3.0]
    assert model({"model": {"tensors": tensors}}).packed == "b.qweight"


@pytest.mark.parametrize(("text", "number"), [("8.6", 86), ("sm_90", 90), ("12.0", 120), ("75", 75), ("", None)])
def test_capability(text: str, number: int | None) -> None:
    assert capability(text) == number


@pytest.mark.parametrize(
    ("text", "context", "kind"),
    [
        ("INFO [__init__.py:216] Automatically detected platform rocm.", {}, "rocm"),
        ("CPU KV cache size: 4,096 tokens", {}, "cpu"),
        ("", {"env": {"VLLM_CPU_KVCACHE_SPACE": "4"}}, "cpu"),
        ("", {"host": {"gpus": [{"index": 0, "name": "L4"}]}}, "cuda"),
        ("", {}, ""),
    ],
)
def test_kind_of_device(text: str, context: dict[str, Any], kind: str) -> None:
    assert device(text, context).kind == kind
