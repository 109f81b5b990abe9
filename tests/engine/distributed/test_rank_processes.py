"""Who is blamed, when ranks end in any order. The ranks are the other ends of real connections."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from multiprocessing import Pipe

import pytest

from headway.distributed.control_channel import ControlChannel
from headway.distributed.process_groups import PeerLostError
from headway.engine.distributed import rank_processes
from headway.engine.distributed.messages import Beat, Clear, End, Failed, Hello, command_of, encoded
from headway.engine.distributed.rank_processes import Member, RankProcesses
from headway.errors import RankError


class World:
    """Three other ranks."""

    def __init__(self, timeout_seconds: float = 300.0):
        self.ranks: dict[int, ControlChannel] = {}
        members = {}
        for rank in (1, 2, 3):
            ours, theirs = Pipe()
            members[rank] = Member(Hello(rank, f"host{rank}", 100 + rank), ControlChannel(ours), None)
            self.ranks[rank] = ControlChannel(theirs)
        self.processes = RankProcesses(members, timeout_seconds)

    def failure(self) -> RankError:
        end = time.monotonic() + 60
        while self.processes.failure is None:
            assert time.monotonic() < end
            time.sleep(0.005)
        return self.processes.failure


@pytest.fixture
def world() -> Iterator[World]:
    made = World()
    yield made
    made.processes.close()


def test_one_that_closes_its_connection(world: World) -> None:
    heard = threading.Event()
    world.processes.watch(heard.set)
    world.ranks[2].close()
    assert (world.failure().rank, world.failure().host) == (2, "host2")
    assert heard.wait(60)
    with pytest.raises(RankError, match="rank 2 on host2"):
        world.processes.tell(Clear([1]))
    assert [status.state for status in world.processes.status()] == ["failed", "ended", "failed", "ended"]


def test_one_that_says_why(world: World) -> None:
    world.ranks[3].send(encoded(Failed("out of memory")))
    assert world.failure().rank == 3
    assert world.failure().why == "out of memory"


def test_who_lost_another_is_not_to_blame(world: World) -> None:
    """A rank hears that a connection broke before rank 0 hears of the one that broke it."""
    world.ranks[1].send(encoded(Failed("connection closed by peer", lost=True)))
    world.ranks[1].close()
    world.ranks[3].close()
    assert world.failure().rank == 3


def test_who_lost_another_is_to_blame_when_no_other_shows(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rank_processes, "_EXPLAINED_SECONDS", 0.05)
    world.ranks[1].send(encoded(Failed("timed out", lost=True)))
    assert world.failure().rank == 1
    assert world.failure().why == "timed out"


def test_a_connection_that_breaks_at_rank_0_is_explained_by_who_broke_it(world: World) -> None:
    threading.Timer(0.2, world.ranks[2].close).start()
    with pytest.raises(RankError, match="rank 2"), world.processes.together():
        raise PeerLostError("reset by peer")


def test_a_defect_at_rank_0(world: World) -> None:
    """The others are somewhere else now."""
    with pytest.raises(RankError, match=r"rank 0 .* IndexError: no such row"), world.processes.together():
        raise IndexError("no such row")


def test_silence() -> None:
    world = World(timeout_seconds=1.5)
    ends = threading.Event()

    def alive() -> None:
        while not ends.wait(0.1):
            for rank in (1, 3):
                try:
                    world.ranks[rank].send(encoded(Beat("ready")))
                except OSError:
                    return

    threading.Thread(target=alive, daemon=True).start()
    assert world.failure().rank == 2
    assert "nothing was heard" in world.failure().why
    ends.set()
    world.processes.close()


def test_something_else_than_a_report(world: World) -> None:
    world.ranks[1].send(b"\xc1 is no message")
    assert world.failure().rank == 1
    assert "something else" in world.failure().why


def test_ready_when_all_are(world: World) -> None:
    done = threading.Event()
    threading.Thread(target=lambda: (world.processes.wait_ready(), done.set())).start()
    for rank in (1, 2):
        world.ranks[rank].send(encoded(Beat("ready")))
    assert not done.wait(0.3)
    world.ranks[3].send(encoded(Beat("ready")))
    assert done.wait(60)


def test_a_group_that_failed_is_closed_once(world: World) -> None:
    acts: list[int] = []
    world.processes.on_close(lambda: acts.append(1))
    world.ranks[2].close()
    assert world.failure().rank == 2
    world.processes.close()
    assert acts == [1]


def test_the_end_is_told_and_may_come_twice(world: World) -> None:
    acts: list[int] = []
    world.processes.on_close(lambda: acts.append(1))
    world.processes.close()
    world.processes.close()
    assert acts == [1]
    told = []
    while not told or not isinstance(told[-1], End):
        told.append(command_of(world.ranks[1].receive()))
    assert world.processes.failure is None
