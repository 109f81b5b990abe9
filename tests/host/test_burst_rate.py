from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from headway.host import host_roofs
from headway.host.burst_rate import Clocks, Rate, burst_rate
from headway.host.cache_levels import last_level_cache_bytes
from headway.host.host_roofs import HostRoofs, host_key, keep_host_roofs, measure_host_roofs, stored_host_roofs


@dataclass
class Machine:
    """A machine whose bursts take the given seconds, in turn, while this process gets a share of its cores."""

    seconds: list[float]
    share: list[float]
    wall: float = 0.0
    cpu: float = 0.0
    bursts: int = 0
    windows: int = 0
    pauses: list[float] = field(default_factory=list)

    def burst(self) -> None:
        took = self.seconds[self.bursts % len(self.seconds)]
        self.bursts += 1
        self.wall += took
        self.cpu += took * self.share[min(self.windows, len(self.share) - 1)]

    def sleep(self, seconds: float) -> None:
        self.windows += 1
        self.pauses.append(seconds)

    @property
    def clocks(self) -> Clocks:
        return Clocks(lambda: self.wall, lambda: self.cpu, self.sleep)


def test_the_best_burst_counts_and_a_quiet_machine_is_asked_once() -> None:
    machine = Machine([0.02, 0.01, 0.05], [2.0])
    assert burst_rate([(machine.burst, 100.0)], 2, 0.1, machine.clocks) == Rate(pytest.approx(100 / 0.01), quiet=True)
    assert machine.pauses == []


def test_a_busy_machine_is_asked_again_until_it_is_quiet() -> None:
    machine = Machine([0.01], [0.9, 1.2, 1.95])
    assert burst_rate([(machine.burst, 1.0)], 2, 0.1, machine.clocks).quiet
    assert machine.windows == 2


def test_a_machine_that_stays_busy_is_believed_for_its_best_only() -> None:
    machine = Machine([0.01], [1.0])
    assert burst_rate([(machine.burst, 1.0)], 2, 0.1, machine.clocks) == Rate(pytest.approx(100), quiet=False)
    assert machine.windows == 3


def test_every_burst_runs_even_when_the_time_is_up() -> None:
    machine, others = Machine([1.0], [1.0]), []
    burst_rate([(machine.burst, 1.0), (lambda: others.append(1), 1.0)], 1, 0.1, machine.clocks)
    assert others == [1]


def roofs(bandwidth: float, *, quiet: bool = True, key: str | None = None) -> HostRoofs:
    return HostRoofs(host_key() if key is None else key, 2, 1 << 25, bandwidth, 2 * bandwidth, {"bf16": 4.0, "fp32": 2.0, "int8": 8.0}, quiet)


def test_kept_figures_are_found_again_for_this_machine_only(tmp_path: Path) -> None:
    assert stored_host_roofs(tmp_path) is None
    assert keep_host_roofs(roofs(10.0), tmp_path / "new") == roofs(10.0)
    assert stored_host_roofs(tmp_path / "new") == roofs(10.0)
    keep_host_roofs(roofs(10.0, key="another machine"), tmp_path)
    assert stored_host_roofs(tmp_path) is None


def test_the_larger_quiet_figure_stays(tmp_path: Path) -> None:
    keep_host_roofs(roofs(10.0), tmp_path)
    assert keep_host_roofs(roofs(8.0), tmp_path).read_bandwidth == 10.0
    assert keep_host_roofs(roofs(12.0), tmp_path).read_bandwidth == 12.0
    assert keep_host_roofs(roofs(99.0, quiet=False), tmp_path).read_bandwidth == 12.0


def test_a_quiet_figure_replaces_an_estimate(tmp_path: Path) -> None:
    keep_host_roofs(roofs(99.0, quiet=False), tmp_path)
    assert keep_host_roofs(roofs(10.0), tmp_path).read_bandwidth == 10.0


@pytest.mark.parametrize("text", ["", "{", "[]", '{"key": 1}', '{"key": "x", "threads": 1, "cache_bytes": 1, "read_bandwidth": "nan"}'])
def test_a_damaged_file_counts_as_none(tmp_path: Path, text: str) -> None:
    (tmp_path / host_roofs.FILE_NAME).write_text(text)
    assert stored_host_roofs(tmp_path) is None


def test_a_folder_that_cannot_be_written_keeps_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert keep_host_roofs(roofs(1.0), tmp_path / "file" / "folder") == roofs(1.0)


@pytest.mark.parametrize(("quiet", "bandwidth"), [(True, 5.0), (False, 9.0)])
def test_beside_other_load_one_thread_stands_for_all(monkeypatch: pytest.MonkeyPatch, quiet: bool, bandwidth: float) -> None:
    """One thread alone reaches 3, so that three reach no more than 9."""
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()

    def measured(*_: object) -> Rate:
        return Rate(3.0 if torch.get_num_threads() == 1 else 5.0, quiet)

    monkeypatch.setattr(host_roofs, "measure_read_bandwidth", measured)
    monkeypatch.setattr(host_roofs, "measure_matrix_speed", measured)
    monkeypatch.setattr(host_roofs, "cpu_budget", lambda: type("Budget", (), {"threads": 3}))
    try:
        found = measure_host_roofs()
    finally:
        torch.set_num_threads(before)
    assert (found.read_bandwidth, found.matrix["bf16"], found.quiet) == (bandwidth, bandwidth, quiet)


def test_real_bursts_give_rates() -> None:
    from headway.host.matrix_speed import FORMATS, measure_matrix_speed
    from headway.host.memory_bandwidth import measure_read_bandwidth

    ticks = iter(range(1_000_000))
    clocks: Callable[[], Clocks] = lambda: Clocks(lambda: float(next(ticks)), lambda: 0.0, lambda seconds: None)  # noqa: E731
    assert measure_read_bandwidth(1 << 16, 1.0, clocks()).best == 1 << 16
    assert all(measure_matrix_speed(kind, 1.0, clocks()).best > 1e6 for kind in FORMATS)


def cache_tree(root: Path, *levels: tuple[str, str]) -> Path:
    for index, (kind, size) in enumerate(levels):
        folder = root / f"sys/devices/system/cpu/cpu0/cache/index{index}"
        folder.mkdir(parents=True)
        (folder / "type").write_text(kind + "\n")
        (folder / "size").write_text(size + "\n")
    return root


def test_the_last_cache_is_the_largest_one_of_data(tmp_path: Path) -> None:
    assert last_level_cache_bytes(tmp_path) == 0
    assert last_level_cache_bytes(cache_tree(tmp_path, ("Data", "32K"), ("Instruction", "64M"), ("Unified", "1M"), ("Unified", "32768K"), ("Unified", "odd"))) == 32 << 20
