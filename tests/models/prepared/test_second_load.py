"""What is loaded from prepared weights is what is loaded from the checkpoint."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import gguf
import pytest
import torch
from safetensors.torch import load_file

from headway.artifacts.inspect import inspect
from headway.errors import ConfigError
from headway.kernels.packed_batch import pack
from headway.models.encoders.load import load_encoder
from headway.models.load import load_model
from headway.models.prepared.mapped_file import MappedStacks
from tests.models.encoders.rows import random_rows
from tests.models.encoders.tiny_encoders import tiny_encoder
from tests.models.prepared.conftest import kept, loaded, logits
from tests.models.tiny_gguf import write_gguf
from tests.models.tiny_models import TinyModel

Tiny = Callable[[str], TinyModel]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32])
def test_the_second_load_unpacks_nothing_and_computes_the_same_bits(
    cache: Path, packed: Path, reads: list[str], dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADWAY_PREPARED_WEIGHTS", "off")
    plain = logits(loaded(packed, dtype))
    assert kept(cache) == []
    monkeypatch.delenv("HEADWAY_PREPARED_WEIGHTS")
    first = logits(loaded(packed, dtype))
    assert len(kept(cache)) == 1
    assert reads
    reads.clear()
    second = logits(loaded(packed, dtype))
    assert reads == []
    assert torch.equal(first, plain)
    assert torch.equal(second, plain)


@pytest.mark.parametrize("name", ["llama", "gemma3", "gemma2_head_scale", "phi3", "qwen3_moe"])
def test_architectures_with_biases_transforms_wide_norms_and_experts(cache: Path, tiny: Tiny, tmp_path: Path, reads: list[str], name: str) -> None:
    path = tmp_path / "model.gguf"
    write_gguf(tiny(name), path, gguf.GGMLQuantizationType.F16)
    first = logits(loaded(path))
    reads.clear()
    assert torch.equal(logits(loaded(path)), first)
    assert reads == []


def test_the_file_is_safetensors_with_what_the_gguf_package_unpacks(cache: Path, packed: Path) -> None:
    loaded(packed, torch.float32)
    stored = load_file(kept(cache)[0])
    reader = gguf.GGUFReader(packed)
    theirs = {t.name: torch.from_numpy(gguf.dequantize(t.data, t.tensor_type).copy()) for t in reader.tensors}
    assert torch.equal(stored["embedding.weight"], theirs["token_embd.weight"])
    down = "layers.1.mlp.down.projection.weight"
    assert torch.equal(stored[down], theirs["blk.1.ffn_down.weight"])
    fused = torch.cat([theirs["blk.0.ffn_gate.weight"], theirs["blk.0.ffn_up.weight"]])
    assert torch.equal(stored["layers.0.mlp.gate_up.weight"], fused)


def test_a_cast_of_a_checkpoint_is_kept_and_a_checkpoint_in_the_dtype_is_not(cache: Path, tiny: Tiny, reads: list[str]) -> None:
    folder = tiny("llama").folder  # float32
    assert inspect(str(folder)).dtype_bytes.keys() == {"F32"}
    load_model(inspect(str(folder)), torch.float32)
    assert kept(cache) == []
    first = logits(load_model(inspect(str(folder)), torch.bfloat16))
    assert len(kept(cache)) == 1
    reads.clear()
    assert torch.equal(logits(load_model(inspect(str(folder)), torch.bfloat16)), first)
    assert reads == []


def test_a_checkpoint_of_which_only_norms_are_stored_otherwise_is_not_kept(cache: Path, tiny: Tiny, tmp_path: Path) -> None:
    write_gguf(tiny("qwen3"), tmp_path / "tiny.gguf", gguf.GGMLQuantizationType.BF16)
    assert inspect(str(tmp_path / "tiny.gguf")).dtype_bytes.keys() == {"BF16", "F32"}
    loaded(tmp_path / "tiny.gguf")
    assert kept(cache) == []


def test_small_models_are_not_kept(cache: Path, packed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("HEADWAY_CACHE", str(cache.parent))
    loaded(packed)
    assert kept(cache) == []


def test_every_dtype_has_its_file(cache: Path, packed: Path) -> None:
    loaded(packed, torch.bfloat16)
    loaded(packed, torch.float32)
    assert len(kept(cache)) == 2


def test_another_file_under_the_same_name_has_another_key(cache: Path, packed: Path, tiny: Tiny, reads: list[str]) -> None:
    before = logits(loaded(packed))
    changed = bytearray(packed.read_bytes())
    changed[-1000] ^= 0x70  # inside a block of weights
    times = packed.stat()
    packed.write_bytes(changed)
    os.utime(packed, ns=(times.st_atime_ns, times.st_mtime_ns))  # size and time are those of before
    reads.clear()
    after = logits(loaded(packed))
    assert reads
    assert not torch.equal(after, before)
    assert len(kept(cache)) == 2


def test_the_same_bytes_elsewhere_have_the_same_key(cache: Path, packed: Path, reads: list[str]) -> None:
    first = logits(loaded(packed))
    moved = packed.with_name("moved.gguf")
    shutil.copyfile(packed, moved)
    packed.unlink()
    reads.clear()
    assert torch.equal(logits(loaded(moved)), first)
    assert reads == []
    assert len(kept(cache)) == 1


def test_another_version_of_the_preparation_has_another_key(cache: Path, packed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded(packed)
    monkeypatch.setattr("headway.models.prepared.identity.PREPARATION", 1 << 20)
    loaded(packed)
    assert len(kept(cache)) == 2


def test_embeddings_stay_on_shared_pages(cache: Path, packed: Path) -> None:
    loaded(packed)
    model = loaded(packed)
    weight: torch.Tensor = model.embedding.weight  # type: ignore[attr-defined, assignment, unused-ignore]
    maps = Path("/proc/self/maps").read_text().splitlines()
    (line,) = [line for line in maps if str(kept(cache)[0]) in line and _within(line, weight.data_ptr())]
    assert line.split()[1] == "rw-p"  # whoever writes gets a copy of his own


def _within(line: str, address: int) -> bool:
    start, _, end = line.split()[0].partition("-")
    return int(start, 16) <= address < int(end, 16)


def test_pages_of_a_module_are_let_go_when_the_next_is_loaded(cache: Path, packed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded(packed)
    most: list[int] = []
    ask = MappedStacks.__call__

    def asked(self: MappedStacks, stack: object) -> torch.Tensor:
        found = ask(self, stack)  # type: ignore[arg-type]
        most.append(len({each.module for each in self._read}))
        return found

    monkeypatch.setattr(MappedStacks, "__call__", asked)
    loaded(packed)
    assert len(most) > 10
    assert set(most) == {1}


@pytest.mark.parametrize("text", ["some", "-", "12 parsecs"])
def test_a_switch_that_cannot_be_read_is_an_error(cache: Path, packed: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("HEADWAY_PREPARED_WEIGHTS", text)
    with pytest.raises(ConfigError, match="HEADWAY_PREPARED_WEIGHTS"):
        loaded(packed)


@pytest.mark.parametrize("name", ["bert", "deberta-v3", "modernbert"])
def test_encoders(cache: Path, tmp_path: Path, reads: list[str], name: str) -> None:
    folder = tiny_encoder(name, tmp_path, "Model").folder  # float32
    load_encoder(folder, torch.float32)
    assert kept(cache) == []
    batch = pack(random_rows((5, 9)))
    first = load_encoder(folder, torch.bfloat16).encode(batch).last
    reads.clear()
    assert torch.equal(load_encoder(folder, torch.bfloat16).encode(batch).last, first)
    assert reads == []
