"""How many inputs share a scale: 128, or less where that does not divide what a matrix reads.

vLLM 0.32 wants groups that divide the inputs of every matrix; its kernels take 32, 64 and 128 (Marlin, on GPUs) and every even number (on CPUs).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from headway.errors import NotBuiltError

SIZES: Final = (128, 64, 32)


def group_size(widths: Iterable[int], asked: int | None) -> int:
    """The largest of SIZES that divides all `widths`, or `asked` if that does. One for all matrices: readers fuse some of them.

    Raises NotBuiltError (`group_size`).
    """
    distinct = sorted(set(widths))
    for size in SIZES if asked is None else (asked,):
        if not any(width % size for width in distinct):
            return size
    wrong = next(width for width in distinct if width % (asked or SIZES[-1]))
    raise NotBuiltError(
        f"groups of {asked or SIZES[-1]} do not divide the {wrong} inputs of some matrices, and engines read no shorter last group",
        reason="group_size", param="group_size",
        fix="Use int8 or fp8, which have no groups." if asked is None else f"Leave --group-size out, or use one that divides {', '.join(map(str, distinct))}.",
    )  # fmt: skip
