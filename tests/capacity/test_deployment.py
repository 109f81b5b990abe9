from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.capacity.deployment import Deployment, headway_weights
from headway.capacity.model_shape import ModelShape
from headway.capacity.on_host import host_ceiling_roofs, host_workload
from headway.capacity.weight_bytes import NO_INTEGERS, IntegerShare
from headway.host.host_roofs import HostRoofs
from tests.capacity.shapes import any_shape, shape

MIB = 1 << 20
deployments = st.builds(
    lambda found, engine, budget, ranks, rows: Deployment(found, engine, headway_weights(found, 2), budget, ranks=ranks, rows=rows),
    any_shape(), st.sampled_from(["headway", "vllm"]), st.integers(300 * MIB, 6000 * MIB), st.sampled_from([1, 2]), st.sampled_from([8, 256]),
)  # fmt: skip


@given(deployments, st.integers(1, 5000), st.integers(1, 5000), st.integers(1, 300), st.integers(1, 300))
def test_need_never_shrinks_with_context_or_concurrency(made: Deployment, context: int, more: int, sequences: int, others: int) -> None:
    need = made.need(context, sequences).total
    assert made.need(context + more, sequences).total >= need
    assert made.need(context, sequences + others).total >= need


@given(deployments, st.integers(1, 40000), st.integers(1, 300))
def test_it_fits_exactly_when_the_budget_holds_the_need(made: Deployment, context: int, sequences: int) -> None:
    need = made.need(context, sequences)
    assert need.total == need.weights + need.cache + need.activations + need.process
    assert made.fits(context, sequences) == (made.budget >= need.total)


@settings(max_examples=60)
@given(deployments, st.integers(1, 64))
def test_the_largest_context_fits_and_one_block_more_does_not(made: Deployment, sequences: int) -> None:
    longest = made.largest_context(sequences)
    assert longest <= (made.shape.context_length or 0)
    assert longest == 0 or made.fits(longest, sequences)
    if longest + made.block_size <= (made.shape.context_length or 0):
        assert not made.fits(longest + made.block_size, sequences)


@settings(max_examples=60)
@given(deployments, st.integers(1, 3000))
def test_the_largest_concurrency_fits_and_one_more_does_not(made: Deployment, context: int) -> None:
    most = made.largest_concurrency(context)
    assert most == 0 or made.fits(context, most)
    assert most == 1 << 20 or not made.fits(context, most + 1)


@given(any_shape(), st.integers(1, 10_000))
def test_a_longer_context_never_lets_more_sequences_in(found: ModelShape, context: int) -> None:
    made = Deployment(found, "headway", headway_weights(found, 2), 2000 * MIB)
    assert made.largest_concurrency(context + 100) <= made.largest_concurrency(context)


def test_the_sum_by_hand() -> None:
    found = shape("grouped")
    made = Deployment(found, "headway", headway_weights(found, 2), 400 * MIB)
    need = made.need(100, 3)
    assert need.weights == 2 * found.parameters
    # 100 tokens are 7 blocks of 16; one null block; a token keeps 2 layers x 2 heads x 2 x 8 numbers.
    assert need.cache == (3 * 7 + 1) * 16 * 2 * 2 * 2 * 8 * 2


def test_a_tied_head_is_in_memory_twice() -> None:
    found = shape("tied")
    assert headway_weights(found, 2) == 2 * (found.parameters + 1000 * 64)


def test_integers_take_their_own_bytes_and_are_read_as_such() -> None:
    """A tied head of 64,000 integers of a byte beside its table, and half of the layers in 5 bits."""
    found = shape("tied")
    layers = found.quantizable // 2
    integers = IntegerShare(64_000 + layers, 64_000 + layers * 5 // 8)
    packed = replace(found, integers=integers)
    assert headway_weights(packed, 2) == 2 * (found.parameters - layers) + 64_000 + layers * 5 // 8
    made = Deployment(packed, "headway", headway_weights(packed, 2), 400 * MIB)
    read = 2 * (found.parameters - layers - 64_000) + integers.nbytes
    assert host_workload(made).decode_step(1, 1).nbytes - made.shape.cache_numbers(1) * 2 == pytest.approx(read, abs=1)
    assert host_workload(Deployment(found, "headway", headway_weights(found, 2), 1)).weight_bits == 16.0
    roofs = HostRoofs("", 1, 0, 1.0, 1.0, {"bf16": 2.0, "fp32": 1.0, "int8": 4.0})
    assert [host_ceiling_roofs(roofs, 2, share).flops for share in (integers, NO_INTEGERS)] == [4.0, 2.0]


@pytest.mark.parametrize("kind", ["grouped", "experts"])
def test_without_integers_a_weight_has_the_bits_of_the_dtype(kind: str) -> None:
    found = shape(kind)
    assert host_workload(Deployment(found, "headway", headway_weights(found, 4), 1, dtype_bytes=4)).weight_bits == 32.0


def test_a_model_that_keeps_nothing_is_bound_by_its_rows() -> None:
    fields: dict[str, Any] = {"model_type": "bert"}
    made = Deployment(shape("grouped", **fields), "runtime", 1, 2000 * MIB, rows=64)
    assert made.cache_bytes(512, 8) == 0
    assert made.largest_concurrency(128) == 64
