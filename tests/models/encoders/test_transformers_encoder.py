"""Encoders that transformers runs: equal to its own model row by row, and refused with the reason where they cannot run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from headway.errors import ArtifactError, NotBuiltError
from headway.kernels.packed_batch import pack
from headway.models.encoders.load import load_encoder
from headway.models.encoders.transformers_encoder import TransformersEncoder
from tests.models.encoders.rows import part, random_rows
from tests.models.encoders.tiny_encoders import FALLBACK, SIZES, MakeEncoder, random_weights

ROWS = random_rows()


@pytest.mark.parametrize("name", FALLBACK)
def test_equal_to_transformers_row_by_row(make: MakeEncoder, name: str) -> None:
    oracle = make(name)
    encoder = load_encoder(oracle.folder, torch.float32)
    assert isinstance(encoder, TransformersEncoder)
    assert encoder.max_positions == (88 if name == "longformer" else 90)  # two rows of its positions are for padding
    batch = pack(ROWS)
    found = encoder.encode(batch, (encoder.num_layers,))
    assert torch.equal(found.last, found.exits[encoder.num_layers])
    for number, row in enumerate(ROWS):
        with torch.no_grad():
            expected = oracle.model(torch.tensor([row])).last_hidden_state[0]
        assert (part(found.last, batch, number) - expected).abs().max() <= 1e-4
        assert (encoder.encode(pack([row])).last - part(found.last, batch, number)).abs().max() <= 1e-5


def test_token_types(make: MakeEncoder) -> None:
    oracle = make("electra")
    encoder = load_encoder(oracle.folder, torch.float32)
    kinds = [[0] * (len(row) // 2) + [1] * (len(row) - len(row) // 2) for row in ROWS]
    batch = pack(ROWS, kinds)
    found = encoder.encode(batch).last
    for number, (row, kind) in enumerate(zip(ROWS, kinds, strict=True)):
        assert (part(found, batch, number) - oracle.states(row, kind)[-1]).abs().max() <= 1e-4


def test_only_the_last_layer_can_be_read(make: MakeEncoder) -> None:
    encoder = load_encoder(make("electra").folder, torch.float32)
    with pytest.raises(NotBuiltError, match="layer 1 of 3"):
        encoder.encode(pack(ROWS), (1, 3))


@pytest.mark.parametrize(
    ("kind", "settings", "why"),
    [
        ("Llama", SIZES, "no bidirectional encoder"),
        ("T5", {"vocab_size": 120, "d_model": 32, "d_kv": 8, "num_layers": 1, "num_heads": 4, "d_ff": 32}, "encoder-decoder"),
        ("Funnel", {"vocab_size": 120, "d_model": 32, "d_head": 8, "n_head": 4, "d_inner": 32, "block_sizes": [1]}, "max_position_embeddings"),
        ("CLIPVision", {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1, "num_attention_heads": 4, "image_size": 8, "patch_size": 4},
         "max_position_embeddings"),
    ],
)  # fmt: skip
def test_what_is_no_text_encoder(tmp_path: Path, kind: str, settings: dict[str, Any], why: str) -> None:
    model = getattr(transformers, f"{kind}Model")(getattr(transformers, f"{kind}Config")(**settings))
    random_weights(model, 1)
    model.save_pretrained(tmp_path)
    with pytest.raises(ArtifactError, match=why) as refused:
        load_encoder(tmp_path, torch.float32)
    assert refused.value.reason == "unsupported_architecture"


def changed(source: Path, to: Path, **config: Any) -> Path:
    """A copy of a checkpoint with fields of its config changed."""
    for file in source.iterdir():
        (to / file.name).write_bytes(file.read_bytes())
    old = json.loads((to / "config.json").read_text())
    (to / "config.json").write_text(json.dumps({**old, **config}))
    return to


def test_code_of_a_repository_is_never_run(make: MakeEncoder, tmp_path: Path) -> None:
    folder = changed(
        make("electra").folder, tmp_path, model_type="own-encoder", architectures=["OwnEncoder"], auto_map={"AutoModel": "own.OwnEncoder"}
    )
    (folder / "own.py").write_text("raise SystemExit('it ran')")
    with pytest.raises(ArtifactError) as refused:
        load_encoder(folder, torch.float32)
    assert refused.value.reason == "remote_code"


def test_a_variant_that_is_not_native_runs_through_transformers(make: MakeEncoder, tmp_path: Path) -> None:
    folder = changed(make("bert").folder, tmp_path, hidden_act="gelu_10")
    assert isinstance(load_encoder(folder, torch.float32), TransformersEncoder)


def test_what_neither_knows_is_refused_in_our_words(make: MakeEncoder, tmp_path: Path) -> None:
    with pytest.raises(NotBuiltError, match="hidden_act is 'squarish'"):
        load_encoder(changed(make("bert").folder, tmp_path, hidden_act="squarish"), torch.float32)


def test_a_decoder_of_an_encoder_architecture_is_refused(make: MakeEncoder, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="no bidirectional encoder"):
        load_encoder(changed(make("bert").folder, tmp_path, is_decoder=True), torch.float32)
