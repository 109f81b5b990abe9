from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.capacity.cluster.link import Link, fitted_link
from headway.errors import ConfigError

LINK = Link(10e-6, 1e9)


def test_costs_reckoned_by_hand() -> None:
    """8 ranks, 8 MB: the ring sends 14 messages of 1 MB, recursive doubling 3 of 8 MB."""
    assert LINK.send(1e6) == pytest.approx(1.01e-3)
    assert LINK.ring(8e6, 8) == pytest.approx(14 * 1.01e-3)
    assert LINK.tree(8e6, 8) == pytest.approx(3 * 8.01e-3)
    assert LINK.all_gather(8e6, 8) == pytest.approx(7 * 1.01e-3)
    assert LINK.all_reduce_seconds(8e6, 8) == (pytest.approx(14 * 1.01e-3), "ring")
    assert LINK.all_reduce_seconds(800, 8) == (pytest.approx(3 * 10.8e-6), "tree")
    assert Link(10e-6, 1e9, "ring").all_reduce_seconds(800, 8)[1] == "ring"
    assert LINK.tree(1e6, 6) == LINK.tree(1e6, 8)
    assert LINK.ring(1e6, 1) == LINK.tree(1e6, 1) == LINK.all_gather(1e6, 1) == 0.0


@given(st.floats(0, 1e-2), st.floats(1e6, 1e12), st.floats(1, 1e9), st.integers(2, 64))
def test_no_all_reduce_is_faster_than_its_bytes(latency: float, bandwidth: float, nbytes: float, ranks: int) -> None:
    """Each rank has to send and receive at least 2 (p - 1) / p n bytes (Patarasuk and Yuan 2009)."""
    link = Link(latency, bandwidth)
    best, _ = link.all_reduce_seconds(nbytes, ranks)
    assert best == min(link.ring(nbytes, ranks), link.tree(nbytes, ranks))
    assert link.ring(nbytes, ranks) >= 2 * (ranks - 1) / ranks * nbytes / bandwidth * (1 - 1e-9)


def test_latency_and_bandwidth_come_out_of_measurements() -> None:
    points = [(float(size), 20e-6 + size / 5e9) for size in (0, 1024, 65536, 1 << 20, 1 << 24)]
    link = fitted_link(points, "ring", "link")
    assert (link.latency, link.bandwidth, link.all_reduce) == (pytest.approx(20e-6), pytest.approx(5e9), "ring")
    for wrong in ([], [(1.0, 1.0)], [(1.0, 1.0), (1.0, 2.0)], [(1.0, 2.0), (100.0, 1.0)]):
        with pytest.raises(ConfigError):
            fitted_link(wrong, "ring", "link")
