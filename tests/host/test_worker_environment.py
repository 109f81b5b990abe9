"""Variables of a worker: set before torch is there, and only where nobody has decided otherwise."""

from __future__ import annotations

import pytest

from headway.host.worker_environment import prepare_worker


@pytest.mark.parametrize(
    ("machine", "before", "after"),
    [
        ("x86_64", {}, {"THP_MEM_ALLOC_ENABLE": "1", "OPENBLAS_NUM_THREADS": "1"}),
        ("aarch64", {}, {"THP_MEM_ALLOC_ENABLE": "1"}),
        ("x86_64", {"THP_MEM_ALLOC_ENABLE": "0", "OPENBLAS_NUM_THREADS": "4"}, {"THP_MEM_ALLOC_ENABLE": "0", "OPENBLAS_NUM_THREADS": "4"}),
    ],
)
def test_what_the_user_set_is_kept(machine: str, before: dict[str, str], after: dict[str, str]) -> None:
    environment = dict(before)
    prepare_worker(environment, machine)
    assert environment == after
