"""Which backend gets a request whose beginning some hold: length first, within bounds of load."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headway.router.prefixes.preference import Preference
from headway.router.upstream.health import BackendStates
from headway.router.upstream.pool import Pool
from tests.router.upstream.test_balancing import backends


@given(st.lists(st.tuples(st.integers(0, 40), st.sampled_from([0, 16, 32])), min_size=1, max_size=5), st.integers(0, 20))
def test_the_longest_beginning_wins_among_those_not_too_busy(places: list[tuple[int, int]], most_ahead: int) -> None:
    held = {f"b{at}": tokens for at, (_, tokens) in enumerate(places) if tokens}
    preference = Preference(held, most_ahead)
    chosen = preference.among(range(len(places)), lambda at: f"b{at}", lambda at: places[at][0])
    least = min(load for load, _ in places)
    near = [at for at, (load, _) in enumerate(places) if load <= least + most_ahead]
    longest = max(places[at][1] for at in near)
    if not held:
        assert list(chosen) == list(range(len(places)))  # as if nothing were known
    else:
        assert list(chosen) == [at for at in near if places[at][1] == longest]


def test_a_pool_follows_it_and_balances_among_equals() -> None:
    states = BackendStates()
    pool = Pool(backends(1, 1, 1), states)
    only = Preference({"m/b2": 32}, 2)
    assert {pool.pick((), only)[0].alias for _ in range(4)} == {"m/b2"}  # type: ignore[index]
    both = Preference({"m/b1": 32, "m/b2": 32}, 2)
    assert sorted(pool.pick((), both)[0].alias for _ in range(4)) == ["m/b1", "m/b1", "m/b2", "m/b2"]  # type: ignore[index]
    states.of(backends(1, 1, 1)[2].identity).in_flight = 3
    picked = [pool.pick((), only)[0].alias for _ in range(4)]  # type: ignore[index]
    assert sorted(picked) == ["m/b0", "m/b0", "m/b1", "m/b1"]
    assert (only.outcome("m/b2"), only.outcome("m/b0")) == ("held", "busy")


def test_neither_an_ejected_backend_nor_one_that_was_tried_is_preferred() -> None:
    pool = Pool(backends(1, 1), BackendStates())
    preference = Preference({"m/b1": 32}, 8)
    assert pool.pick(["m/b1"], preference)[0].alias == "m/b0"  # type: ignore[index]
    pool.states[1].healthy = False
    assert pool.pick((), preference)[0].alias == "m/b0"  # type: ignore[index]
