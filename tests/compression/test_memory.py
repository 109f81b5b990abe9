"""How much is in memory while a model is compressed: one layer, whatever the number of layers, and a few thousand tokens."""

from __future__ import annotations

import weakref
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import LlamaConfig

from headway.compression import run
from headway.compression.dense_source import DenseSource
from headway.compression.hidden_file import HiddenFile
from tests.compression.tiny_runs import compressed, write_texts
from tests.engine.tiny_folder import write_byte_tokenizer
from tests.models.tiny_models import make_tiny_model
from tests.models.tiny_sizes import SIZES

LAYER = 4 * (2 * 64 * 64 + 2 * 64 * 32 + 3 * 64 * 96 + 2 * 64)


def largest(folder: Path, monkeypatch: pytest.MonkeyPatch, method: str, *, layers: int, samples: int = 16) -> tuple[int, int]:
    """Bytes of weights that were read or lie in modules, and of hidden states, that were alive at once."""
    name = f"model-{layers}"
    if not (folder / name).exists():
        make_tiny_model(name, LlamaConfig(**SIZES, num_hidden_layers=layers), folder)
        write_byte_tokenizer(folder / name)
    weights: list[weakref.ref[torch.Tensor]] = []
    hidden: list[weakref.ref[torch.Tensor]] = []
    models: list[Any] = []
    peaks = [0, 0]

    class Model(run.ReferenceModel):
        def __init__(self, card: Any):
            super().__init__(card)
            models.append(self)

    def stack(self: Any, names: Any, read: Any = DenseSource.stack) -> torch.Tensor:
        weights.append(weakref.ref(found := read(self, names)))
        look()
        return found

    def batches(self: Any, read: Any = HiddenFile.batches) -> Any:
        for batch in read(self):
            hidden.append(weakref.ref(batch))
            look()
            yield batch

    def look() -> None:
        filled = [tensor for model in models for tensor in model._model.parameters() if tensor.device.type != "meta"]
        alive = [tensor for each in weights if (tensor := each()) is not None]
        storages = {tensor.untyped_storage().data_ptr(): tensor.untyped_storage().nbytes() for tensor in (*filled, *alive)}
        peaks[0] = max(peaks[0], sum(storages.values()))
        peaks[1] = max(peaks[1], sum(tensor.nbytes for each in hidden if (tensor := each()) is not None))

    with monkeypatch.context() as patched:
        patched.setattr(run, "ReferenceModel", Model)
        patched.setattr(DenseSource, "stack", stack)
        patched.setattr(HiddenFile, "batches", batches)
        texts = write_texts(folder / "texts.txt", texts=samples + 20)
        compressed(folder / name, method, folder / f"{layers}-{samples}-{method}", samples=samples, length=64, calibration=texts)
    return peaks[0], peaks[1]


@pytest.mark.parametrize("method", ["int4-g128", "gptq", "awq"])
def test_layers_come_one_after_the_other(method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = (largest(tmp_path, monkeypatch, method, layers=layers)[0] for layers in (4, 8))
    assert few == many
    assert LAYER <= few < 4 * LAYER  # as it is, as it becomes, and the one before until its names are given back


def test_samples_stay_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = (largest(tmp_path, monkeypatch, "gptq", layers=2, samples=samples)[1] for samples in (64, 1024))
    batch = 4 * 4096 * SIZES["hidden_size"]
    assert batch <= few <= many <= 3 * batch < 4 * 1024 * 64 * SIZES["hidden_size"]
