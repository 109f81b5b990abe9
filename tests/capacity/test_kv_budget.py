from __future__ import annotations

import pytest

from headway.capacity.kv_budget import kv_budget
from headway.errors import CapacityError, ConfigError
from headway.host.memory_budget import MemoryBudget

GIB = 1 << 30


def _memory(limit: int = 16 * GIB, available: int = 12 * GIB) -> MemoryBudget:
    return MemoryBudget(limit, limit, available, "the machine")


def test_default_is_two_gib_or_a_quarter_of_what_is_available() -> None:
    assert kv_budget(_memory(), resident_bytes=0).nbytes == 2 * GIB
    assert kv_budget(_memory(available=4 * GIB), resident_bytes=0).nbytes == GIB
    assert kv_budget(_memory(available=4 * GIB), resident_bytes=0, weight_bytes=2 * GIB).nbytes == GIB // 2
    assert kv_budget(_memory(available=GIB), resident_bytes=0, weight_bytes=2 * GIB).nbytes == 0


def test_share_of_the_limit_less_weights_and_process() -> None:
    budget = kv_budget(_memory(), resident_bytes=GIB, weight_bytes=2 * GIB, gpu_memory_utilization=0.5)
    assert budget.nbytes == 5 * GIB
    assert budget.rule == "16.00 GiB limit x 0.5 - 2.00 GiB weights to load - 1.00 GiB of this process"


def test_share_is_cut_to_what_is_available() -> None:
    budget = kv_budget(_memory(available=3 * GIB), resident_bytes=GIB, gpu_memory_utilization=0.9)
    assert budget.nbytes == 3 * GIB
    assert "cut" in budget.rule


def test_explicit_bytes_win() -> None:
    assert (
        kv_budget(_memory(), resident_bytes=0, gpu_memory_utilization=0.5, kv_cache_memory_bytes=12345).nbytes == 12345
    )


def test_nothing_left_shows_the_arithmetic() -> None:
    with pytest.raises(CapacityError, match=r"16\.00 GiB limit x 0\.1 - 4\.00 GiB") as caught:
        kv_budget(_memory(), resident_bytes=GIB, weight_bytes=4 * GIB, gpu_memory_utilization=0.1)
    assert caught.value.reason == "no_memory_for_kv"


@pytest.mark.parametrize(
    "flags", [{"gpu_memory_utilization": 0.0}, {"gpu_memory_utilization": 1.5}, {"kv_cache_memory_bytes": 0}]
)
def test_impossible_values(flags: dict[str, float]) -> None:
    with pytest.raises(ConfigError):
        kv_budget(_memory(), resident_bytes=0, **flags)  # type: ignore[arg-type]


def test_more_than_the_limit_is_refused() -> None:
    with pytest.raises(CapacityError):
        kv_budget(_memory(), resident_bytes=0, kv_cache_memory_bytes=17 * GIB)
