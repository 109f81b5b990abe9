"""Native encoders against transformers: every architecture, ragged batches, alone and in company, exits, token types."""

from __future__ import annotations

import pytest
import torch

from headway.kernels.invariant_backend import INVARIANT
from headway.kernels.packed_batch import pack
from headway.kernels.reference import REFERENCE
from headway.kernels.torch_backend import TORCH
from headway.models.encoders.load import load_encoder
from headway.models.encoders.native_encoder import NativeEncoder
from tests.models.encoders.rows import part, random_rows
from tests.models.encoders.tiny_encoders import NATIVE, MakeEncoder

STATES = 1e-4  # of transformers, float32
COMPANY = 1e-5
ROWS = random_rows()


@pytest.mark.parametrize("name", NATIVE)
def test_hidden_states_of_a_ragged_batch(make: MakeEncoder, name: str) -> None:
    oracle = make(name)
    encoder = load_encoder(oracle.folder, torch.float32)
    assert isinstance(encoder, NativeEncoder)
    batch = pack(ROWS)
    found = encoder.encode(batch, range(1, encoder.num_layers + 1))
    assert found.last.shape == (len(batch.token_ids), encoder.hidden_size)
    for number, row in enumerate(ROWS):
        expected = oracle.states(row)
        assert (part(found.last, batch, number) - expected[-1]).abs().max() <= STATES
        for layer in range(1, encoder.num_layers):
            state = expected[layer]
            if name.startswith(("modernbert", "mmbert")):
                state = oracle.model.final_norm(state).detach()
            assert (part(found.exits[layer], batch, number) - state).abs().max() <= STATES


@pytest.mark.parametrize("name", NATIVE)
def test_a_row_does_not_see_its_neighbours(make: MakeEncoder, name: str) -> None:
    encoder = load_encoder(make(name).folder, torch.float32)
    batch = pack(ROWS)
    together = encoder.encode(batch).last
    for number, row in enumerate(ROWS):
        assert (encoder.encode(pack([row])).last - part(together, batch, number)).abs().max() <= COMPANY


@pytest.mark.parametrize("name", NATIVE)
def test_bfloat16_follows_float32(make: MakeEncoder, name: str) -> None:
    oracle = make(name)
    encoder = load_encoder(oracle.folder, torch.bfloat16)
    batch = pack(ROWS)
    found = encoder.encode(batch).last
    assert found.dtype == torch.bfloat16
    for number, row in enumerate(ROWS):
        ours, expected = part(found, batch, number).float(), oracle.states(row)[-1]
        cosines = torch.cosine_similarity(ours, expected, dim=1)
        assert cosines.mean() >= 0.9995
        assert cosines.min() >= 0.998  # random weights leave some tokens almost nothing but the difference of large numbers


@pytest.mark.parametrize("name", ["bert", "roberta", "deberta-v2"])
def test_token_types(make: MakeEncoder, name: str) -> None:
    oracle = make(name)
    encoder = load_encoder(oracle.folder, torch.float32)
    kinds = [[0] * (len(row) // 2) + [1] * (len(row) - len(row) // 2) for row in ROWS]
    batch = pack(ROWS, kinds)
    found = encoder.encode(batch).last
    for number, (row, kind) in enumerate(zip(ROWS, kinds, strict=True)):
        assert (part(found, batch, number) - oracle.states(row, kind)[-1]).abs().max() <= STATES


@pytest.mark.parametrize("name", ["bert", "mpnet", "modernbert", "mmbert-32k"])
def test_reference_kernels_agree(make: MakeEncoder, name: str) -> None:
    folder = make(name).folder
    ours, reference = (load_encoder(folder, torch.float32, kernels).encode(pack(ROWS)).last for kernels in (TORCH, REFERENCE))
    assert (ours - reference).abs().max() <= STATES


@pytest.mark.parametrize("name", ["bert", "mpnet", "modernbert"])
def test_batch_invariant_kernels_give_the_same_bits(make: MakeEncoder, name: str) -> None:
    encoder = load_encoder(make(name).folder, torch.float32, INVARIANT)
    batch = pack(ROWS)
    together = encoder.encode(batch).last
    for number, row in enumerate(ROWS):
        assert torch.equal(encoder.encode(pack([row])).last, part(together, batch, number))
