"""Kernels that recorded answers were made with, against those that this machine runs."""

from __future__ import annotations

from collections.abc import Mapping


def unapplied(recorded: Mapping[str, str], present: Mapping[str, str | Exception | None], untuned: Mapping[str, str]) -> list[str]:
    """One sentence for each recorded kernel library that is absent, broken, of another version or not tuned here.

    `present` maps a library to its version, to what its import raised, or to None when it is not installed; `untuned` maps a
    library to the kernel for which this machine has no tuned configuration.
    """
    sentences = []
    for name, version in recorded.items():
        found = present.get(name)
        if found is None:
            sentences.append(f"{name} is not installed")
        elif isinstance(found, Exception):
            sentences.append(f"{name} failed to import ({type(found).__name__})")
        elif found != version:
            sentences.append(f"they were recorded with {name} {version}, not {found}")
        elif name in untuned:
            sentences.append(f"{name} has no autotuned kernel for {untuned[name]}")
    return sentences
