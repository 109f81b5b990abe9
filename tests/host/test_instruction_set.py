from __future__ import annotations

from pathlib import Path

from headway.host.instruction_set import instruction_set
from tests.host.machine_tree import write


def test_x86_flags_common_to_all_cpus(tmp_path: Path) -> None:
    cpuinfo = (
        "processor\t: 0\nmodel name\t: Example 9000\nflags\t\t: fpu avx2 fma avx512f avx512_bf16 amx_bf16\n\n"
        "processor\t: 1\nmodel name\t: Example 9000\nflags\t\t: fpu avx2 fma avx512f avx512_bf16\n"
    )
    isa = instruction_set(write(tmp_path, {"proc/cpuinfo": cpuinfo}))
    assert isa.model == "Example 9000"
    assert isa.flags == {"avx2", "fma", "avx512f", "avx512_bf16"}
    assert isa.has("avx2", "avx512_bf16")
    assert not isa.has("avx2", "amx_bf16")


def test_arm_features(tmp_path: Path) -> None:
    isa = instruction_set(
        write(tmp_path, {"proc/cpuinfo": "processor : 0\nFeatures : fp asimd asimddp i8mm bf16 sve\n"})
    )
    assert isa.has("asimd", "asimddp", "i8mm", "bf16", "sve")


def test_nothing_to_read_means_no_flags(tmp_path: Path) -> None:
    assert instruction_set(tmp_path).flags == frozenset()
