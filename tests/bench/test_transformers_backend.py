"""The comparison model is the model: same weights from a folder and from GGUF, same tokens in a padded batch as alone."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from transformers import AutoConfig

from headway.bench.prompts import Prompt
from headway.bench.transformers_backend import TransformersModel
from tests.models.tiny_gguf import write_gguf
from tests.models.tiny_models import TinyModel, tiny_model


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> TinyModel:
    return tiny_model("smollm", tmp_path_factory.mktemp("models"))


def prompts(*lengths: tuple[int, int]) -> list[Prompt]:
    return [Prompt("", tuple(range(3, 3 + size)), wanted) for size, wanted in lengths]


def test_gguf_and_folder_hold_the_same_weights(tiny: TinyModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.gguf"
    write_gguf(tiny, path)
    wanted = tiny.oracle.state_dict()
    # The writer leaves out the vocabulary, from which transformers takes its size.
    from_pretrained = AutoConfig.from_pretrained
    monkeypatch.setattr(
        AutoConfig, "from_pretrained", lambda where, **more: tiny.oracle.config if "gguf_file" in more else from_pretrained(where, **more)
    )
    for reference in (path, tiny.folder):
        found = TransformersModel(str(reference), torch.float32).model
        assert not found.training
        for name, weight in found.state_dict().items():
            torch.testing.assert_close(weight, wanted[name], rtol=0, atol=0)
    assert TransformersModel(str(path), torch.bfloat16).model.dtype == torch.bfloat16


def test_batches_count_only_what_was_asked_for(tiny: TinyModel, monkeypatch: pytest.MonkeyPatch) -> None:
    model = TransformersModel(str(tiny.folder), torch.float32)
    shapes: list[tuple[int, int]] = []
    generate = model.model.generate

    def watched(ids: torch.Tensor, **options: object) -> torch.Tensor:
        out: torch.Tensor = generate(ids, **options)
        shapes.append((ids.shape[0], out.shape[1] - ids.shape[1]))
        return out

    monkeypatch.setattr(model.model, "generate", watched)
    done = model.generate(prompts((5, 2), (9, 6), (4, 3)), batch_size=2)
    assert (done.requests, done.prompt_tokens, done.output_tokens) == (3, 18, 11)
    assert shapes == [(2, 6), (1, 3)], "a batch runs to its longest answer"


def test_padding_does_not_change_the_tokens(tiny: TinyModel, monkeypatch: pytest.MonkeyPatch) -> None:
    model = TransformersModel(str(tiny.folder), torch.float32)
    outputs: list[torch.Tensor] = []
    generate = model.model.generate
    monkeypatch.setattr(model.model, "generate", lambda ids, **options: outputs.append(generate(ids, **options)) or outputs[-1])
    short, long = prompts((5, 8), (20, 8))
    model.generate([short, long], batch_size=2)
    assert outputs[0][0, -8:].tolist() == tiny.greedy(list(short.token_ids), 8)
