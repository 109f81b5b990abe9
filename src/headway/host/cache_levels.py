"""The last cache before memory: models that are hardly larger than it are read faster than memory can deliver."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_UNITS: Final = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def last_level_cache_bytes(root: Path = Path("/")) -> int:
    """Bytes of the largest data or unified cache that CPU 0 uses; 0 when the system does not tell."""
    sizes = [0]
    for folder in (root / "sys/devices/system/cpu/cpu0/cache").glob("index*"):
        try:
            kind, text = (folder / "type").read_text().strip(), (folder / "size").read_text().strip()
        except OSError:
            continue
        if kind != "Instruction" and text[:-1].isdecimal() and text[-1:] in _UNITS:
            sizes.append(int(text[:-1]) * _UNITS[text[-1]])
    return max(sizes)
