"""Which vector instructions the CPU has, as far as kernels care."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

# Flags of /proc/cpuinfo that select a kernel, x86 ("flags") and Arm ("Features").
X86_FLAGS: Final = ("avx2", "fma", "f16c", "avx_vnni", "avx512f", "avx512bw", "avx512vl", "avx512_vnni", "avx512_bf16",
                    "avx512_fp16", "amx_tile", "amx_int8", "amx_bf16", "amx_fp16")  # fmt: skip
ARM_FLAGS: Final = ("asimd", "asimddp", "asimdhp", "i8mm", "bf16", "sve", "sve2", "sme")


@dataclass(frozen=True, slots=True)
class InstructionSet:
    """`model` is the CPU's name; `flags` are those of the tables above that every CPU of the machine has."""

    model: str
    flags: frozenset[str]

    def has(self, *flags: str) -> bool:
        """True when all `flags` are there."""
        return self.flags.issuperset(flags)


def instruction_set(root: Path = Path("/")) -> InstructionSet:
    """Read /proc/cpuinfo; no flags when it cannot be read, so that the portable kernels are chosen."""
    try:
        text = (root / "proc/cpuinfo").read_text("utf-8", "replace")
    except OSError:
        return InstructionSet("unknown", frozenset())
    model, per_cpu = "unknown", []
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() in ("flags", "Features"):
            per_cpu.append(frozenset(value.split()))
        elif name.strip() == "model name" and model == "unknown":
            model = value.strip()
    known = frozenset((*X86_FLAGS, *ARM_FLAGS))
    return InstructionSet(model, frozenset.intersection(known, *per_cpu) if per_cpu else frozenset())
