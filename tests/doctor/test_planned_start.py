"""What a start would say about memory, against what real starts said."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.doctor.planned_start import start_refusal
from tests.e2e.tiny_model import tiny_model

# 2 x 2 layers x 2 heads x 16 x 2 B = 256 B a token, 4096 B a block
_BLOCK = 4096


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tiny_model(tmp_path_factory.mktemp("model")))


def refusal(model: str, limit: float | None = None, env: dict[str, str] | None = None, **flags: str) -> str:
    return start_refusal({"model": model, "dtype": "bfloat16", **flags}, env or {}, limit)


def test_a_start_that_would_go_well(model: str) -> None:
    assert refusal(model) == ""
    assert refusal(model, max_model_len="auto", kv_cache_memory_bytes="20000") == ""


def test_the_context_does_not_fit_the_cache(model: str) -> None:
    text = refusal(model, kv_cache_memory_bytes=str(5 * _BLOCK))
    assert "max seq len (8192)" in text
    assert "The longest sequence that fits has 64 tokens" in text, "five blocks, one of them the null block"
    assert refusal(model, kv_cache_memory_bytes=str(5 * _BLOCK), max_model_len="64") == ""


def test_the_cache_by_its_variable(model: str) -> None:
    assert "max seq len" in refusal(model, env={"VLLM_CPU_KVCACHE_SPACE": "0.00002"})


def test_a_context_beyond_the_models(model: str) -> None:
    assert "greater than the derived max_model_len (8192" in refusal(model, max_model_len="9k")
    assert refusal(model, env={"VLLM_ALLOW_LONG_MAX_MODEL_LEN": "1"}, max_model_len="9k") == ""


def test_a_container_that_is_too_small(model: str) -> None:
    assert "no memory is left for the KV cache" in refusal(model, limit=0.3, gpu_memory_utilization="0.5")
    assert refusal(model, limit=8.0, gpu_memory_utilization="0.5") == ""


def test_what_cannot_be_judged_is_no_refusal(model: str, tmp_path: Path) -> None:
    assert refusal("org/absent") == ""
    assert refusal(str(tmp_path)) == ""
    assert refusal(model, max_model_len="many") == ""
    assert start_refusal({}, {}, None) == ""
