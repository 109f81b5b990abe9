"""Leases on a real block pool: bounded in number, blocks and time, and every block comes back."""

from __future__ import annotations

from headway.engine.kv_transfer.leases import Leases
from headway.kvcache.block_pool import BlockPool
from headway.telemetry.transfer_stats import TransferStats


class World:
    def __init__(self, blocks: int = 20, most: int = 3):
        self.now = 0.0
        self.told: list[TransferStats] = []
        self.pool = BlockPool(blocks + 1)
        self.leases = Leases(self.pool, most, 10.0, self.told.append, lambda: self.now)

    def keep(self, count: int) -> str | None:
        """Of a sequence that has ended: nobody else holds its blocks."""
        blocks = self.pool.allocate(count)
        assert blocks is not None
        lease = self.leases.keep(blocks, [bytes([b]) * 32 for b in blocks])
        self.pool.release(blocks)
        return None if lease is None else lease.id


def test_blocks_are_held_until_they_are_taken_or_the_time_is_over() -> None:
    world = World()
    taken, late = world.keep(2), world.keep(3)
    assert taken is not None
    assert late is not None
    assert world.pool.num_free == 15
    assert not world.leases.due
    lease = world.leases.find(taken, 0)
    assert lease is not None
    lease.done = True
    assert world.leases.due
    world.leases.sweep()
    assert lease.revoked
    assert world.pool.num_free == 17
    world.now = 10.0
    assert world.leases.due
    world.leases.sweep()
    assert world.pool.num_free == 20
    assert world.leases.find(late, 0) is None
    assert [(stats.lease_event, stats.leases, stats.leased_blocks) for stats in world.told] == [("kept", 1, 2), ("kept", 2, 5), ("taken", 1, 3), ("expired", 0, 0)]


def test_who_comes_late_gets_the_time_to_pull() -> None:
    world = World()
    name = world.keep(1)
    assert name is not None
    world.now = 9.0
    assert world.leases.find(name, 5.0) is not None
    world.now = 13.0
    world.leases.sweep()
    assert world.leases.find(name, 0) is not None
    world.now = 14.0
    world.leases.sweep()
    assert world.leases.find(name, 0) is None


def test_the_oldest_makes_room_in_number_and_in_blocks() -> None:
    world = World(blocks=20, most=3)
    names = [world.keep(2) for _ in range(4)]
    assert [name is not None and world.leases.find(name, 0) is not None for name in names] == [False, True, True, True]
    large = world.keep(9)  # with two of the others it would be more than half of the pool
    assert large is not None
    assert [name is not None and world.leases.find(name, 0) is not None for name in names[1:]] == [False, False, False]
    assert world.pool.num_free == 11


def test_more_than_half_of_the_pool_is_cut() -> None:
    world = World(blocks=20)
    name = world.keep(15)
    assert name is not None
    lease = world.leases.find(name, 0)
    assert lease is not None
    assert len(lease.blocks) == len(lease.hashes) == 10
    assert world.keep(0) is None
    world.leases.close()
    assert not world.leases.drop_oldest()
    assert world.pool.num_free == 20
