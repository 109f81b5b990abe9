from __future__ import annotations

import pytest

from headway.capacity.device_table import find_device
from headway.capacity.model_table import known_models
from headway.capacity.on_device import Placement, on_device
from headway.capacity.tensor_split import divisors, split_obstacle, tensor_splits
from tests.capacity.shapes import shape


@pytest.mark.parametrize(("heads", "sizes"), [(64, (1, 2, 4, 8)), (40, (1, 2, 4, 5, 8)), (28, (1, 2, 4, 7)), (24, (1, 2, 3, 4, 6, 8)), (9, (1, 3)), (0, (1,))])
def test_sizes_divide_the_heads_and_need_not_be_powers_of_two(heads: int, sizes: tuple[int, ...]) -> None:
    assert divisors(heads) == sizes


def test_obstacles() -> None:
    split = shape("grouped", num_attention_heads=28, hidden_size=28 * 8, num_key_value_heads=4)
    assert split_obstacle(split, 3) == "attention heads (28) must be divisible by tensor parallel size (3)"
    assert "4 key-value heads" in str(split_obstacle(split, 7))
    assert [split_obstacle(split, ranks) for ranks in (1, 2, 4)] == [None] * 3
    many = shape("grouped", num_attention_heads=40, hidden_size=320, num_key_value_heads=40)
    assert split_obstacle(many, 5) is None


def test_seventy_billion_on_a100_40gb_takes_four_in_16_bit_and_one_in_4() -> None:
    """The guide: fp16 140 GB, four cards; AWQ on one card of 40 GB with 4,096 tokens at 0.95."""
    llama, card = known_models()["llama-2-70b"].shape, find_device("a100-40gb")
    rows = {row.ranks: row for row in tensor_splits(llama, card, Placement(), 4096, 1)}
    assert [rows[ranks].fits for ranks in (1, 2, 4, 8)] == [False, False, True, True]
    from headway.capacity.quantization_table import quantizations

    assert on_device(llama, card, Placement(quantizations()["awq"], utilization=0.95)).fits(4096, 1)


def test_every_rank_holds_its_share_and_repeats_no_more_than_it_must() -> None:
    found, card = shape("grouped"), find_device("t4")
    one, eight = (on_device(found, card, Placement(ranks=ranks)).need(1024, 4) for ranks in (1, 8))
    assert eight.weights == -(-one.weights // 8)
    assert eight.cache == one.cache // 2  # two key heads: one on each rank
    assert eight.process == one.process
