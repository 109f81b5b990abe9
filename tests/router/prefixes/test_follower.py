"""A follower over real sockets: what it knows after gaps, replays, restarts, silence and nonsense."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from headway.router.metrics.registry import RouterMetrics
from headway.router.prefixes.follower import EventSource, Follower
from headway.router.prefixes.token_chain import TokenChain
from tests.router.prefixes.publisher import ScriptedPublisher
from tests.router.prefixes.relay import Relay
from tests.router.prefixes.wire import batch, removed, stored

NAMES = ("m", "m/b0")


def block(number: int) -> bytes:
    """The batch that tells of one block, which begins a prompt with `number`."""
    return batch(stored([number + 1], None, [number, number], 2), ts=float(number))


@contextmanager
def following(publisher: ScriptedPublisher, stale: float = 600) -> Iterator[Follower]:
    source = EventSource(publisher.endpoint, publisher.replay if publisher.replays else None)
    made = Follower(source, NAMES, 1000, stale, RouterMetrics())
    made.start()
    try:
        publisher.wait_for_subscriber()
        yield made
    finally:
        made.close()
        made.join(30)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 240
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def knows(follower: Follower, *numbers: int) -> bool:
    """Exactly these, of the first ten."""
    return [number for number in range(10) if follower.held(TokenChain([number, number]))] == list(numbers)


def counted(follower: Follower, outcome: str) -> float:
    return follower._metrics.value("headway_prefix_event_batches", *NAMES, outcome)


def test_what_is_told_is_held_until_it_is_told_to_be_gone() -> None:
    with ScriptedPublisher() as publisher, following(publisher) as follower:
        publisher.send(0, block(1))
        publisher.send(1, block(2))
        until(lambda: knows(follower, 1, 2))
        publisher.send(2, batch(removed([2])))
        until(lambda: knows(follower, 2))
        until(lambda: follower._metrics.value("headway_prefix_index_blocks", *NAMES) == 1)
        follower.close()
        assert knows(follower)


def test_who_comes_late_asks_for_what_was_before() -> None:
    with ScriptedPublisher(kept={3: block(3), 4: block(4)}) as publisher, following(publisher) as follower:
        until(lambda: knows(follower, 3, 4))
        publisher.send(4, block(4))  # the subscription has it too
        publisher.send(5, block(5))
        until(lambda: knows(follower, 3, 4, 5))
        assert publisher.asked == [0]
        assert counted(follower, "restarted") == counted(follower, "gap") == 0


def test_a_gap_is_filled_by_a_replay() -> None:
    with ScriptedPublisher() as publisher, following(publisher) as follower:
        publisher.send(0, block(0))
        until(lambda: knows(follower, 0))
        publisher.send(1, batch(removed([1])), lose=True)
        publisher.send(2, block(2), lose=True)
        publisher.send(3, block(3))
        until(lambda: knows(follower, 2, 3))
        assert publisher.asked == [0, 1]
        assert (counted(follower, "gap"), counted(follower, "lost"), counted(follower, "applied")) == (1, 0, 4)


@pytest.mark.parametrize("replays", [True, False])
def test_what_is_lost_for_good_costs_the_index(replays: bool) -> None:
    """Batch 1, which told that block 0 is gone, is not to be had any more: nothing from before is believed."""
    with ScriptedPublisher(replays) as publisher, following(publisher) as follower:
        publisher.send(0, block(0))
        until(lambda: knows(follower, 0))
        publisher.send(2, block(2))
        until(lambda: knows(follower, 2))
        assert counted(follower, "lost") == 1
        publisher.send(3, block(3))
        until(lambda: knows(follower, 2, 3))


@pytest.mark.parametrize("replays", [True, False])
def test_an_engine_that_begins_anew_holds_nothing_of_before(replays: bool) -> None:
    with ScriptedPublisher(replays) as publisher, following(publisher) as follower:
        for number in range(3):
            publisher.send(number, block(number))
        until(lambda: knows(follower, 0, 1, 2))
        publisher.__exit__()
        until(lambda: not follower.connected)
        assert knows(follower, 0, 1, 2)  # a connection that breaks says nothing of the cache
        fresh = {number: block(number + 5) for number in range(4)} if replays else {}
        with ScriptedPublisher(replays, publisher.ports, fresh) as again:
            again.wait_for_subscriber()
            if not replays:
                again.send(4, block(8))
            until(lambda: knows(follower, *((5, 6, 7, 8) if replays else (8,))))
            assert counted(follower, "restarted") == 1


def test_a_connection_that_broke_and_came_back_costs_nothing() -> None:
    with ScriptedPublisher() as publisher, following(publisher) as follower:
        for number in range(2):
            publisher.send(number, block(number))
        until(lambda: knows(follower, 0, 1))
        publisher.__exit__()
        until(lambda: not follower.connected)
        missed = {**publisher.kept, 2: block(2)}
        with ScriptedPublisher(True, publisher.ports, missed) as again:
            again.wait_for_subscriber()
            again.send(3, block(3))
            until(lambda: knows(follower, 0, 1, 2, 3))
            assert counted(follower, "restarted") == counted(follower, "lost") == 0


def test_numbers_that_begin_again_are_a_new_engine() -> None:
    with ScriptedPublisher(False) as publisher, following(publisher) as follower:
        publisher.send(7, block(7))
        until(lambda: knows(follower, 7))
        publisher.send(0, block(1))
        until(lambda: knows(follower, 1))
        assert counted(follower, "restarted") == 1


def test_an_index_without_a_connection_ages_out() -> None:
    with ScriptedPublisher() as publisher, following(publisher, stale=0.05) as follower:
        publisher.send(0, block(0))
        until(lambda: knows(follower, 0))
        publisher.__exit__()
        until(lambda: knows(follower))
        assert counted(follower, "stale") == 1


def test_nonsense_costs_the_index_and_nothing_else() -> None:
    with ScriptedPublisher() as publisher, following(publisher) as follower:
        publisher.send(0, block(0))
        until(lambda: knows(follower, 0))
        publisher.send_frames(b"one part")
        publisher.send_frames(b"", b"short", block(1))
        until(lambda: counted(follower, "malformed") == 2)
        assert knows(follower, 0)
        publisher.send(1, b"\xc1")
        until(lambda: counted(follower, "malformed") == 3)
        publisher.send(2, block(2))
        until(lambda: knows(follower, 2))


def test_a_replay_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway.router.prefixes.follower._REPLAY_SECONDS", 0.05)
    with ScriptedPublisher(False) as publisher:
        made = Follower(EventSource(publisher.endpoint, publisher.replay), NAMES, 1000, 600, RouterMetrics())
        made.start()
        publisher.wait_for_subscriber()
        publisher.send(0, block(0))
        until(lambda: knows(made, 0))
        assert counted(made, "no_replay") >= 1
        made.close()
        made.join(30)


def test_a_connection_that_loses_everything_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is closed and nothing comes: only heartbeats without an echo tell."""
    monkeypatch.setattr("headway.router.prefixes.follower._HEARTBEAT_MS", 50)
    monkeypatch.setattr("headway.router.prefixes.follower._SILENCE_MS", 2000)
    with ScriptedPublisher() as publisher, Relay(publisher.ports[0]) as relay:
        made = Follower(EventSource(relay.address, publisher.replay), NAMES, 1000, 600, RouterMetrics())
        made.start()
        publisher.wait_for_subscriber()
        publisher.send(0, block(0))
        until(lambda: knows(made, 0) and made.connected)
        relay.silent.set()
        until(lambda: not made.connected)
        made.close()
        made.join(30)
