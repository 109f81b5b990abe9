"""Who starts when adapters lack a place: nobody is blocked who needs none, nobody waits for ever, and equal ones run together."""

from __future__ import annotations

from typing import Any

from headway.engine.lora.slots import AdapterSlots
from headway.engine.scheduler import SchedulerLimits
from headway.engine.sequence import Sequence, Status
from tests.engine.scheduler_world import World, expected_output


class Named:
    """All that scheduling knows of an adapter."""

    def __init__(self, name: str):
        self.name = name


class LoraWorld(World):
    def __init__(self, most: int, policy: str = "fcfs", seats: int = 8):
        super().__init__(SchedulerLimits(64, seats, policy=policy), 60, 4)
        self.scheduler.adapters = AdapterSlots(most)
        self.adapters: dict[str, Any] = {name: Named(name) for name in "ABC"}

    def ask(self, name: str | None, output: int = 6, priority: int = 0) -> Sequence:
        number = len(self.all)
        sequence = self.add([number + 1, 2, 3], output, priority=priority, salt=name)
        sequence.request.adapter = None if name is None else self.adapters[name]
        return sequence

    def running(self) -> list[int]:
        return [self.all.index(s) for s in self.scheduler.running]


def finish(world: LoraWorld) -> None:
    for _ in range(500):
        if not world.scheduler.has_work:
            break
        world.step()
        used = {s.request.adapter for s in world.scheduler.running} - {None}
        assert world.scheduler.adapters is not None
        assert len(used) <= world.scheduler.adapters.most
    assert [s.status for s in world.all] == [Status.FINISHED] * len(world.all)
    assert all(s.output_ids == expected_output(s.tokens[: s.num_prompt], s.num_output) for s in world.all if s.num_prompt)


def test_others_pass_one_that_lacks_a_place() -> None:
    world = LoraWorld(1)
    for name in ("A", "B", None, "A", "B"):
        world.ask(name)
    world.step()
    assert world.running() == [0, 2, 3]
    use = world.scheduler.adapter_use()
    assert use is not None
    assert (use.most, use.running, use.waiting) == (1, ("A",), ("B",))
    finish(world)


def test_later_ones_do_not_keep_a_place_busy_for_ever() -> None:
    world = LoraWorld(1)
    first, waits = world.ask("A", 8), world.ask("B", 4)
    for _ in range(200):
        world.step()
        if waits.status is Status.FINISHED:
            break
        if len(world.scheduler.waiting) < 4:
            world.ask("A", 8)
    assert first.status is Status.FINISHED
    assert waits.status is Status.FINISHED
    finish(world)


def test_those_that_were_there_run_together_first() -> None:
    world = LoraWorld(1)
    names = ["A", "B"] * 3
    for name in names:
        world.ask(name)
    world.step()
    assert world.running() == [0, 2, 4]
    while world.scheduler.running[0].request.adapter is world.adapters["A"]:
        world.step()
        if not world.scheduler.running:
            world.step()
    assert world.running() == [1, 3, 5]
    finish(world)


def test_a_request_that_leaves_lets_the_others_in() -> None:
    world = LoraWorld(1)
    world.ask("A", 12)
    waits = world.ask("B")
    world.step()
    late = world.ask("A")
    world.step()
    assert world.running() == [0]
    world.scheduler.finish(waits, "abort")
    world.step()
    assert late.status is Status.RUNNING
    world.scheduler.finish(late, "abort")
    world.all = [world.all[0]]
    finish(world)


def test_priorities_come_first() -> None:
    world = LoraWorld(2, policy="priority", seats=2)
    for name, priority in (("A", 5), ("B", 4), ("C", 0), (None, 1)):
        world.ask(name, priority=priority)
    world.step()
    assert world.running() == [2, 3]
    finish(world)
