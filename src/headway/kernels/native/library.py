"""The compiled module, and which of its instruction sets runs here; or why none does."""

from __future__ import annotations

import importlib
import os
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Final

from headway.errors import ConfigError

VARIABLE: Final = "HEADWAY_KERNELS"
_NO_OPENMP: Final = "torch is built without OpenMP, so kernels run on one thread"


@dataclass(frozen=True, slots=True)
class NativeLibrary:
    """`module` None: `missing` says what is missing and what to do about it. `sets`: usable instruction sets, best first."""

    module: ModuleType | None
    sets: tuple[str, ...] = ()
    missing: str | None = None


@cache
def native_library() -> NativeLibrary:
    """Looked for once. torch must be imported before: its OpenMP threads are the ones that kernels run on."""
    import torch  # noqa: F401

    try:
        module = importlib.import_module("headway.kernels._native")
    except ImportError as error:
        return NativeLibrary(
            None, missing="the compiled kernels are not there, torch does everything, slower; install a C++17 compiler (g++ 10 or clang 12)"
            f" and run `pip install --force-reinstall --no-deps` on Headway's sources again ({error})",
        )  # fmt: skip
    sets = tuple(module.usable_sets())
    if not sets:
        return NativeLibrary(None, missing="this processor has no AVX2: the compiled kernels cannot run, torch does everything, slower")
    return NativeLibrary(module, sets, None if module.has_openmp() else _NO_OPENMP)


def chosen_set() -> str | None:
    """The instruction set that is to run, None for torch: the best, unless HEADWAY_KERNELS names another.

    Raises ConfigError (`unknown_kernels`) for a name that is not there.
    """
    wanted = os.environ.get(VARIABLE, "auto").strip().lower()
    if wanted == "torch":
        return None
    library = native_library()
    if wanted == "auto":
        return library.sets[0] if library.sets else None
    if wanted not in library.sets:
        there = ", ".join(("auto", "torch", *library.sets, "triton"))
        raise ConfigError(
            f"{VARIABLE}={wanted}: there are no such kernels here; {library.missing or 'they need other instructions'}",
            reason="unknown_kernels", param=VARIABLE, fix=f"Use one of: {there}.",
        )  # fmt: skip
    return wanted
