from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.capacity.ceilings import Roofs, Workload, decode_ceiling, knee, prefill_ceiling
from headway.capacity.model_table import known_models
from tests.capacity.shapes import any_shape, shape

ROOFS = Roofs(bandwidth=42e9, flops=0.87e12, origin="given")


def test_decode_alone_is_bandwidth_over_bytes() -> None:
    """Half a billion parameters in bf16 at 42 GB/s: about 42 tokens a second; 7 billion in 4 bit: about 11."""
    found = shape("tied")
    work = Workload(found, 16, 2)
    assert decode_ceiling(work, ROOFS, 1, 1) == pytest.approx(42e9 / (2 * found.active + 2 * 2 * 2 * 2 * 8), rel=1e-6)
    seven = known_models()["llama-2-7b"].shape
    assert decode_ceiling(Workload(seven, 4.5, 2), ROOFS, 1, 1) == pytest.approx(42e9 / (6.607e9 * 4.5 / 8 + 524288), rel=1e-3)


def test_prefill_is_operations_over_two_per_parameter() -> None:
    found = known_models()["qwen3-0.6b"].shape
    body = found.parameters - 151936 * 1024
    assert prefill_ceiling(Workload(found, 16, 2), ROOFS, 1) == pytest.approx(0.87e12 / (2 * body), rel=0.001)
    long = prefill_ceiling(Workload(found, 16, 2), ROOFS, 4096)
    assert long == pytest.approx(0.87e12 / (2 * body + 4 * 28 * 2048 * 16 * 128), rel=1e-6)


def test_many_sequences_end_at_the_arithmetic() -> None:
    work = Workload(shape("grouped"), 16, 2)
    assert decode_ceiling(work, ROOFS, 1, 100_000) == pytest.approx(0.87e12 / (2 * work.shape.active), rel=1e-6)
    assert knee(work, ROOFS) == pytest.approx(0.87e12 / (2 * 21e9))


@given(any_shape(), st.integers(1, 30_000), st.integers(1, 200), st.sampled_from([4.5, 8, 16]))
def test_ceilings_fall_with_context_and_bits_and_rise_with_sequences(found, context, sequences, bits) -> None:  # type: ignore[no-untyped-def]
    work = Workload(found, bits, 2)
    base = decode_ceiling(work, ROOFS, context, sequences)
    assert decode_ceiling(work, ROOFS, context + 500, sequences) <= base
    assert decode_ceiling(Workload(found, 2 * bits, 2), ROOFS, context, sequences) <= base
    assert decode_ceiling(work, ROOFS, context, sequences + 1) >= base * (1 - 1e-9)
    assert prefill_ceiling(work, ROOFS, context + 500) <= prefill_ceiling(work, ROOFS, context)


def test_what_the_cache_keeps_arrives_faster() -> None:
    roofs = Roofs(40e9, 1e12, "measured", cache_bytes=32_000_000, cache_bandwidth=160e9)
    assert roofs.read_seconds(16_000_000) == pytest.approx(16e6 / 160e9)
    assert roofs.read_seconds(232_000_000) == pytest.approx(200e6 / 40e9 + 32e6 / 160e9)
    assert Roofs(40e9, 1e12, "given").read_seconds(16e6) == pytest.approx(16e6 / 40e9)
