from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.distributed.rank_place import RankPlace, stage_layers

SIZES = st.integers(1, 12)


@given(tensor=SIZES, pipeline=SIZES)
def test_ranks_of_a_stage_lie_together(tensor: int, pipeline: int) -> None:
    places = [RankPlace(rank, tensor, pipeline) for rank in range(tensor * pipeline)]
    assert {(place.stage, place.part) for place in places} == {(s, p) for s in range(pipeline) for p in range(tensor)}
    assert all(place.rank in place.stage_ranks and len(place.stage_ranks) == tensor for place in places)
    assert [place.rank for place in places if place.is_last] == list(places[0].last_ranks)
    assert [place.rank for place in places if place.is_first] == list(range(tensor))


@given(tensor=SIZES, size=st.integers(0, 300))
def test_uneven_shares_cover_everything_once(tensor: int, size: int) -> None:
    shares = [RankPlace(rank, tensor, 1).uneven_share(size) for rank in range(tensor)]
    assert [i for share in shares for i in share] == list(range(size))


@given(tensor=SIZES, each=st.integers(1, 50))
def test_equal_shares(tensor: int, each: int) -> None:
    shares = [RankPlace(rank, tensor, 1).share(each * tensor) for rank in range(tensor)]
    assert [i for share in shares for i in share] == list(range(each * tensor))
    assert {len(share) for share in shares} == {each}


def test_what_does_not_divide() -> None:
    with pytest.raises(ValueError, match="9 cannot be divided by 2"):
        RankPlace(0, 2, 1).share(9)


@given(layers=st.integers(1, 200), stages=st.integers(1, 40))
def test_stages_are_even(layers: int, stages: int) -> None:
    if stages > layers:
        with pytest.raises(ValueError, match="stages"):
            stage_layers(layers, stages)
        return
    found = stage_layers(layers, stages)
    assert [layer for stage in found for layer in stage] == list(range(layers))
    counts = [len(stage) for stage in found]
    assert max(counts) - min(counts) <= 1
    if stages > 2 and layers % stages:  # the ends have more than layers to do
        assert min(counts[0], counts[-1]) == min(counts)


@pytest.mark.parametrize("partition", [(3, 3), (3, 5, 0), (2, 2, 2, 2), (9,)])
def test_partitions_that_do_not_fit(partition: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="partition"):
        stage_layers(8, 3, partition)


def test_a_given_partition() -> None:
    assert stage_layers(8, 3, (1, 5, 2)) == (range(1), range(1, 6), range(6, 8))
