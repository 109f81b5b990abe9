"""The text that stands in a prompt for an image: marks and, for each tile, as many image tokens as it has rows.

As `Idefics3Processor.replace_image_token` of transformers 5.24; SmolVLM's processor writes the same.
"""

from __future__ import annotations

from typing import Final

IMAGE: Final = "<image>"
_AROUND: Final = "<fake_token_around_image>"
_WHOLE: Final = "<global-img>"


def image_text(rows: int, columns: int, tile_rows: int) -> str:
    """For an image of `rows` x `columns` tiles and the whole behind them (0 x 0 = the whole alone), `tile_rows` rows of the decoder each."""
    tokens = IMAGE * tile_rows
    whole = f"{_AROUND}{_WHOLE}{tokens}{_AROUND}"
    if rows == 0 and columns == 0:
        return whole
    lines = ("".join(f"{_AROUND}<row_{y + 1}_col_{x + 1}>{tokens}" for x in range(columns)) + "\n" for y in range(rows))
    return "".join(lines) + "\n" + whole
