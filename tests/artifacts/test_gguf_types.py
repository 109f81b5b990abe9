from __future__ import annotations

import gguf

from headway.artifacts.gguf_types import BLOCK_TYPE_BY_NAME, BLOCK_TYPES, REMOVED_TYPES


def test_block_types_are_those_of_the_gguf_package() -> None:
    theirs = {int(kind): (kind.name, *sizes) for kind, sizes in gguf.GGML_QUANT_SIZES.items()}
    ours = {number: (block.name, block.elements, block.nbytes) for number, block in BLOCK_TYPES.items()}
    # Newer gguf packages may know more; what both know must be the same, and none of theirs of today may be missing.
    assert {number: ours.get(number) for number in theirs if number <= 41} == {
        n: t for n, t in theirs.items() if n <= 41
    }


def test_names_and_numbers_are_unique_and_removed_numbers_stay_free() -> None:
    assert len(BLOCK_TYPE_BY_NAME) == len(BLOCK_TYPES)
    assert not BLOCK_TYPES.keys() & REMOVED_TYPES.keys()
