"""Kleene's logic, against another definition of it: UNKNOWN is a value that is not known yet, and every completion is tried."""

from __future__ import annotations

import itertools

from headway.router.truth import Truth, all_of, any_of

VALUES = {Truth.FALSE: (False,), Truth.UNKNOWN: (False, True), Truth.TRUE: (True,)}


def completed(outcomes: set[bool]) -> Truth:
    return Truth.UNKNOWN if len(outcomes) == 2 else Truth.of(outcomes.pop())


def test_and_or_of_up_to_four_parts() -> None:
    for count in range(1, 5):
        for parts in itertools.product(Truth, repeat=count):
            worlds = list(itertools.product(*(VALUES[part] for part in parts)))
            assert all_of(parts) is completed({all(world) for world in worlds}), parts
            assert any_of(parts) is completed({any(world) for world in worlds}), parts
            assert all_of(iter(parts)) is all_of(reversed(parts))


def test_nothing_to_combine() -> None:
    assert all_of(()) is Truth.TRUE
    assert any_of(()) is Truth.FALSE


def test_not() -> None:
    for value in Truth:
        assert value.negated() is completed({not world for world in VALUES[value]})
        assert value.negated().negated() is value
