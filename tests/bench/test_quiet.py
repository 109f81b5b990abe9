"""The rule of `benchmarks/`: contenders take turns, disturbed readings are thrown away."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    path = Path(__file__).parents[2] / "benchmarks" / "quiet.py"
    spec = importlib.util.spec_from_file_location("quiet", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "quiet", module)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "wait_until_calm", lambda limit: None)
    return module


def scripted(quiet: ModuleType, monkeypatch: pytest.MonkeyPatch, foreign: list[float]) -> None:
    shares = iter(foreign)

    def measured(work: Callable[[], float], others: object) -> tuple[float, float]:
        return work(), next(shares)

    monkeypatch.setattr(quiet, "measured", measured)


def test_contenders_take_turns(quiet: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    scripted(quiet, monkeypatch, [0.0] * 6)
    order: list[str] = []

    def contender(name: str) -> Callable[[int], float]:
        return lambda run: order.append(f"{name}{run}") or float(run)  # type: ignore[func-returns-value]

    first, second = quiet.alternate([("a", contender("a")), ("b", contender("b"))], 3)
    assert order == ["a0", "b0", "a1", "b1", "a2", "b2"]
    assert first.values == second.values == [0.0, 1.0, 2.0]
    assert first.median == 1.0


def test_a_disturbed_reading_is_taken_again_under_another_number(quiet: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    scripted(quiet, monkeypatch, [0.5, 0.04, 0.01, 0.0])
    asked: list[int] = []
    [reading] = quiet.alternate([("a", lambda run: asked.append(run) or 10.0 * run)], 2)
    assert asked == [0, 2, 4, 1], "a cache filled by the first try must not serve the second"
    assert reading.values == [40.0, 10.0]
    assert (reading.thrown_away, reading.disturbed) == (2, 0)


def test_the_least_disturbed_is_kept_and_marked_when_it_never_gets_quiet(quiet: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    scripted(quiet, monkeypatch, [0.5, 0.2, 0.9])
    [reading] = quiet.alternate([("a", lambda run: float(run))], 1, tries=3)
    assert reading.values == [1.0]
    assert reading.foreign == [0.2]
    assert (reading.thrown_away, reading.disturbed) == (2, 1)


def test_cpu_of_children_and_of_named_processes_is_not_foreign(quiet: ModuleType) -> None:
    burn = "sum(i * i for i in range(3_000_000))"
    before = quiet.own_seconds()
    subprocess.run([sys.executable, "-c", burn], check=True)
    assert quiet.own_seconds() - before > 0.05, "a child that has ended counts"
    assert quiet.own_seconds([os.getppid()]) >= quiet.own_seconds()
    assert quiet.busy_seconds() > 0


def test_a_local_server_is_found_by_its_port(quiet: ModuleType) -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        assert quiet.listener(listening.getsockname()[1]) == os.getpid()
        assert quiet.tree_rss(os.getpid()) > 1 << 20
