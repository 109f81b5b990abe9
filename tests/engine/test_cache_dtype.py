"""--kv-cache-dtype int8: what it holds, how close its answers are, and where it is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from headway.engine.cache_dtype import cache_dtype
from headway.engine.config import EngineConfig
from headway.engine.llm import LLM
from headway.engine.loading import LoadedEngine, load_engine
from headway.engine.sampling_params import SamplingParams
from headway.errors import ConfigError
from headway.kernels.invariant_backend import INVARIANT
from headway.kernels.native.library import VARIABLE, native_library
from headway.kernels.torch_backend import TORCH
from tests.engine.tiny_folder import complete_tiny_model

CACHE = 1 << 20
needs_kernels = pytest.mark.skipif(not native_library().sets, reason=native_library().missing or "")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return complete_tiny_model("llama", tmp_path_factory.mktemp("cache")).folder


def loaded(folder: Path, kept: str) -> LoadedEngine:
    return load_engine(EngineConfig(str(folder), dtype="bfloat16", kv_cache_memory_bytes=CACHE, max_model_len=64, kv_cache_dtype=kept))


@needs_kernels
def test_the_same_memory_holds_more_tokens(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "auto")
    plain, packed = loaded(folder, "auto"), loaded(folder, "int8")
    g = plain.capacity.geometry
    assert plain.capacity.bytes_per_token == 2 * g.layers * g.kv_heads * g.head_dim * 2
    assert packed.capacity.bytes_per_token == 2 * g.layers * g.kv_heads * (g.head_dim + 4)
    assert packed.capacity.tokens == pytest.approx(plain.capacity.tokens * 2 * g.head_dim / (g.head_dim + 4), rel=0.02)
    assert packed.memory.kv_cache == packed.capacity.kv_bytes <= CACHE
    assert f"({g.head_dim} x 1 B + 4 B)" in packed.capacity.equation()
    assert packed.core.runner.kv.dtype is torch.int8


@needs_kernels
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_answers_stay_close(folder: Path, dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a model with random weights; and the cache is read back, since the prompt is found in it the second time."""
    monkeypatch.setenv(VARIABLE, "auto")
    prompt = {"prompt_token_ids": list(range(3, 43))}
    sampling = SamplingParams(temperature=0.0, max_tokens=8, ignore_eos=True, prompt_logprobs=0)
    found = {}
    for kept in ("auto", "int8"):
        llm = LLM(str(folder), dtype=dtype, max_model_len=64, kv_cache_memory_bytes=CACHE, kv_cache_dtype=kept)
        first, second = (llm.generate(prompt, sampling, use_tqdm=False)[0] for _ in range(2))
        assert first.outputs[0].token_ids == second.outputs[0].token_ids
        found[kept] = [next(iter(table.values())).logprob for table in first.prompt_logprobs[1:]]
    worst = (torch.tensor(found["auto"]) - torch.tensor(found["int8"])).abs().max()
    assert 0 < worst < 0.05


@pytest.mark.parametrize("kernels", [TORCH, INVARIANT], ids=lambda kernels: kernels.name)
def test_backends_that_cannot_read_it_say_so(kernels: object) -> None:
    assert cache_dtype("auto", torch.bfloat16, kernels) is torch.bfloat16  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="read by the compiled kernels only") as caught:
        cache_dtype("int8", torch.bfloat16, kernels)  # type: ignore[arg-type]
    assert caught.value.reason == "quantized_cache_unsupported"
    assert caught.value.param == "kv_cache_dtype"


def test_other_dtypes_are_no_choice() -> None:
    with pytest.raises(ConfigError, match="kv_cache_dtype must be one of auto, int8"):
        EngineConfig("x", kv_cache_dtype="fp8")
