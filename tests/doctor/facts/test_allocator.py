"""Who holds the memory, read from what allocators print."""

from __future__ import annotations

import pytest

from headway.doctor.evidence.log.scan import read_text
from headway.doctor.facts import memory
from headway.doctor.facts.allocator import SIGHTS, OutOfMemory, out_of_memory_of

START = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 80.00 MiB. GPU 2 has a total capacity of 24.00 GiB of which 64.00 MiB is free."
OWN = "Including non-PyTorch memory, this process has 9.50 GiB memory in use."
SPLIT = "Of the allocated memory 8.75 GiB is allocated by PyTorch, with 402.00 MiB allocated in private pools (e.g., CUDA Graphs), and 32.00 MiB is reserved by PyTorch but unallocated."


def read(*lines: str) -> OutOfMemory:
    log = read_text("log.txt", "\n".join(lines).encode(), (*SIGHTS, *memory.SIGHTS))
    (found,) = out_of_memory_of(log)
    return found


@pytest.mark.parametrize("joint", [" ", "\n"], ids=["one line", "wrapped"])
def test_every_number_of_the_new_text(joint: str) -> None:
    found = read(joint.join((START, "Process 77 has 14.25 GiB memory in use.", OWN, SPLIT)))
    assert (found.gpu, found.asked, found.total, found.free, found.own) == (2, 80 / 1024, 24.0, 1 / 16, 9.5)
    assert (found.allocated, found.unallocated, found.pools) == (8.75, 1 / 32, 402 / 1024)
    assert found.foreign == ((77, 14.25),)
    assert found.foreign_gib == 14.25


def test_old_text_gives_unallocated_by_difference() -> None:
    found = read(
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB (GPU 1; 40.00 GiB total capacity; 30.00 GiB already allocated;"
        " 512.00 MiB free; 37.50 GiB reserved in total by PyTorch)"
    )
    assert (found.gpu, found.total, found.free, found.allocated, found.unallocated) == (1, 40.0, 0.5, 30.0, 7.5)


def test_the_own_process_by_its_outer_pid_is_nobody_else() -> None:
    found = read(f"{START} Process 9911 has 23.90 GiB memory in use. Including non-PyTorch memory, this process has 23.90 GiB memory in use.")
    assert found.foreign == ()


def test_an_impossible_size_is_left_out() -> None:
    found = read(f"{START} Process 36 has 17179869184.00 GiB memory in use. {OWN}")
    assert found.foreign == ()


def test_what_is_missing_in_the_sum_is_foreign() -> None:
    found = read(f"{START} {OWN}")
    assert found.foreign_gib == pytest.approx(24.0 - 1 / 16 - 9.5 - 0.75)


def test_pieces_of_another_process_do_not_belong() -> None:
    found = read(f"(Worker_TP0 pid=1) {START}", "(Worker_TP1 pid=2) Process 77 has 14.25 GiB memory in use.")
    assert found.foreign == ()
