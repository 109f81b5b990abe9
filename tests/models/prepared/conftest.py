"""A tiny GGUF model in 4-bit blocks, a cache of its own, and a count of the tensors that are read from the checkpoint."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import gguf
import pytest
import torch

from headway.artifacts.inspect import inspect
from headway.models.causal_lm import CausalLM
from headway.models.load import load_model
from headway.quantization.weight_reader import WeightReader
from tests.models.runs import in_chunks, tokens
from tests.models.tiny_gguf import write_gguf
from tests.models.tiny_models import TinyModel

Load = Callable[..., CausalLM]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where prepared weights of this test lie. Tiny models are kept, too, and by torch's kernels, which have all of them dequantized."""
    monkeypatch.setenv("HEADWAY_KERNELS", "torch")
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("HEADWAY_PREPARED_WEIGHTS", raising=False)
    monkeypatch.setattr("headway.models.prepared.identity.SMALLEST_BYTES", 1)
    return tmp_path / "cache" / "prepared"


@pytest.fixture
def packed(tiny: Callable[[str], TinyModel], tmp_path: Path) -> Path:
    """A GGUF file with matrices of 4-bit blocks."""
    path = tmp_path / "tiny.gguf"
    write_gguf(tiny("qwen3"), path, gguf.GGMLQuantizationType.Q4_0)
    return path


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the tensors that were read and unpacked, as they are."""
    names: list[str] = []
    read_into = WeightReader.read_into

    def counted(self: WeightReader, info: object, out: torch.Tensor) -> None:
        names.append(info.name)  # type: ignore[attr-defined]
        read_into(self, info, out)  # type: ignore[arg-type]

    monkeypatch.setattr(WeightReader, "read_into", counted)
    return names


def loaded(path: Path, dtype: torch.dtype = torch.bfloat16) -> CausalLM:
    return load_model(inspect(str(path)), dtype)


def logits(model: CausalLM) -> torch.Tensor:
    return in_chunks(model, tokens(1), 9)


def kept(cache: Path) -> list[Path]:
    """All files of prepared weights, finished and not."""
    return sorted(path for path in cache.glob("*") if path.suffix in (".safetensors", ".part"))


def touched_again(path: Path) -> None:
    """Another time than the one that the file was finished with, whatever the clock's resolution."""
    os.utime(path, ns=(path.stat().st_atime_ns, path.stat().st_mtime_ns + 2 * 10**9))
