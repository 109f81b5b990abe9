"""Order of loading, retries and their waits, on a clock that only these tests move."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headway.errors import ArtifactError, PackageError, PlacementError
from headway.runtime.loading.load_thread import Retries, load_all
from headway.runtime.loading.model_entry import ModelEntry
from headway.runtime.served_model import Readiness, ServedModel


class FakeClock:
    def __init__(self, ends_at: float = float("inf")):
        self.time = 0.0
        self.sleeps: list[float] = []
        self.ends_at = ends_at

    def now(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> bool:
        self.sleeps.append(seconds)
        self.time += seconds
        return self.time >= self.ends_at


def models(*names: str) -> list[ServedModel]:
    return [ServedModel(ModelEntry(name), name) for name in names]


def loader(failures: dict[str, list[BaseException]], log: list[str]) -> Callable[[ServedModel], None]:
    """Each model fails with its exceptions, one per attempt, and is ready then."""

    def load(model: ServedModel) -> None:
        log.append(model.name)
        if failures.get(model.name):
            raise failures[model.name].pop(0)
        model.readiness = Readiness("ready")

    return load


def test_the_wait_doubles_up_to_five_minutes() -> None:
    retries = Retries(12, 5.0)
    assert [retries.wait_after(attempt) for attempt in range(1, 9)] == [5, 10, 20, 40, 80, 160, 300, 300]
    assert retries.wait_after(12) is None


def test_a_failure_that_may_pass_is_tried_again_and_says_so() -> None:
    [model] = models("a")
    clock, log = FakeClock(), []
    seen: list[str | None] = []

    def load(served: ServedModel) -> None:
        seen.append(served.readiness.reason)
        loader({"a": [RuntimeError("the driver is busy")] if len(log) < 2 else []}, log)(served)

    load_all([model], load, Retries(5, 5.0), clock)
    assert clock.sleeps == [5, 10]
    assert seen == [
        None,
        "retrying after RuntimeError: the driver is busy (attempt 2 of 5)",
        "retrying after RuntimeError: the driver is busy (attempt 3 of 5)",
    ]
    assert model.readiness == Readiness("ready")


def test_attempts_come_to_an_end() -> None:
    [model] = models("a")
    clock, log = FakeClock(), []
    load_all([model], loader({"a": [RuntimeError("busy")] * 9}, log), Retries(5, 5.0), clock)
    assert log == ["a"] * 5
    assert clock.sleeps == [5, 10, 20, 40]
    assert model.readiness == Readiness("failed", "RuntimeError: busy")


@pytest.mark.parametrize("error", [PackageError("x", reason="no_family"), ArtifactError("x", reason="hash_mismatch")])
def test_a_final_failure_is_not_tried_again(error: BaseException) -> None:
    [model] = models("a")
    clock, log = FakeClock(), []
    load_all([model], loader({"a": [error]}, log), Retries(5, 5.0), clock)
    assert (log, clock.sleeps, model.readiness.state) == (["a"], [], "failed")


def test_others_are_loaded_while_one_waits_and_the_order_is_kept() -> None:
    first, second, third = models("a", "b", "c")
    clock, log = FakeClock(), []
    full = PlacementError("full", reason="out_of_memory")
    states: list[str] = []

    def load(model: ServedModel) -> None:
        states.append(f"{model.name}: a is {first.readiness.state}")
        loader({"a": [full] if log.count("a") == 0 else []}, log)(model)

    load_all([first, second, third], load, Retries(5, 5.0), clock)
    assert log == ["a", "b", "c", "a"]
    assert states[1:3] == ["b: a is loading", "c: a is loading"]
    assert all(model.is_ready for model in (first, second, third))


def test_a_model_that_fails_leaves_the_others_alone() -> None:
    first, second = models("a", "b")
    load_all([first, second], loader({"a": [PackageError("no", reason="no_family")]}, []), Retries(5, 5.0), FakeClock())
    assert (first.readiness.state, second.readiness.state) == ("failed", "ready")


def test_the_end_of_the_process_ends_the_wait() -> None:
    [model] = models("a")
    log: list[str] = []
    load_all([model], loader({"a": [RuntimeError("busy")] * 9}, log), Retries(5, 5.0), FakeClock(ends_at=1))
    assert log == ["a"]
    assert model.readiness.state == "loading"
