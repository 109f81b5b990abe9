"""Exits: layers above the highest wanted one are not run, and a pass costs the same calls whatever is in it."""

from __future__ import annotations

import pytest
import torch

from headway.kernels.packed_batch import pack
from headway.kernels.torch_backend import TORCH
from headway.models.encoders.load import load_encoder
from tests.kernels.counted_calls import CountedCalls
from tests.models.encoders.rows import random_rows
from tests.models.encoders.tiny_encoders import MakeEncoder

PRODUCTS = 4  # of a layer: query, key and value; output; up; down


def products(call: object) -> int:
    with CountedCalls() as counted:
        call()  # type: ignore[operator]
    return sum(count for name, count in counted.calls.items() if "linear" in name)


@pytest.mark.parametrize("name", ["bert", "modernbert"])
def test_layers_above_the_highest_exit_are_skipped(make: MakeEncoder, name: str) -> None:
    encoder = load_encoder(make(name).folder, torch.float32, TORCH)
    batch = pack(random_rows())
    for exits, layers in (((), encoder.num_layers), ((1,), 1), ((2, 1), 2), ((2, encoder.num_layers), encoder.num_layers)):
        assert products(lambda exits=exits: encoder.encode(batch, exits)) == PRODUCTS * layers
        found = encoder.encode(batch, exits)
        assert set(found.exits) == set(exits)
        if exits:
            assert torch.equal(found.last, found.exits[max(exits)])


@pytest.mark.parametrize("name", ["bert", "deberta-v3", "modernbert"])
def test_products_do_not_multiply_with_rows(make: MakeEncoder, name: str) -> None:
    encoder = load_encoder(make(name).folder, torch.float32, TORCH)
    calls = {products(lambda rows=rows: encoder.encode(pack(random_rows(rows)))) for rows in ((4,), (4, 9, 4, 2), (3,) * 20)}
    assert calls == {PRODUCTS * encoder.num_layers}


def test_exits_without_the_final_norm(make: MakeEncoder) -> None:
    oracle = make("modernbert")
    encoder = load_encoder(oracle.folder, torch.float32)
    encoder.norm_exits = False
    row = random_rows((9,))[0]
    states = oracle.states(row)
    found = encoder.encode(pack([row]), (2, encoder.num_layers))
    assert (found.exits[2] - states[2]).abs().max() <= 1e-4
    assert (found.last - states[-1]).abs().max() <= 1e-4


def test_an_empty_batch_and_empty_rows(make: MakeEncoder) -> None:
    encoder = load_encoder(make("bert").folder, torch.float32)
    row = random_rows((6,))[0]
    alone, among_nothing = encoder.encode(pack([row])).last, encoder.encode(pack([[], row, []])).last
    assert torch.equal(alone, among_nothing)


@pytest.mark.parametrize(("name", "most"), [("bert", 90), ("roberta", 88), ("xlm-roberta", 86), ("mpnet", 198), ("modernbert", 200)])
def test_the_longest_row(make: MakeEncoder, name: str, most: int) -> None:
    oracle = make(name)
    encoder = load_encoder(oracle.folder, torch.float32)
    assert encoder.max_positions == most
    row = random_rows((most,))[0]
    assert (encoder.encode(pack([row])).last - oracle.states(row)[-1]).abs().max() <= 1e-4
    if name != "modernbert":  # rotation has no end
        with pytest.raises(IndexError, match="position"):
            encoder.encode(pack([[*row, 5]]))
