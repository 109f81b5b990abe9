"""The kinds of norms, by the name that a decoder's configuration gives them."""

from __future__ import annotations

from typing import Final, Literal

from headway.layers.layer_norm import HeadLayerNorm, LayerNorm
from headway.layers.rms_norm import HeadNorm, RMSNorm, RowNorm

NormKind = Literal["rms", "layer"]
Norm = RMSNorm | LayerNorm
QkNorm = Literal["heads", "rows"]  # every head on its own; all query heads, and all key heads, of a token together
HeadNorms = HeadNorm | HeadLayerNorm | RowNorm

NORMS: Final[dict[NormKind, type[Norm]]] = {"rms": RMSNorm, "layer": LayerNorm}
HEAD_NORMS: Final[dict[tuple[NormKind, QkNorm], type[HeadNorms]]] = {
    ("rms", "heads"): HeadNorm, ("rms", "rows"): RowNorm, ("layer", "heads"): HeadLayerNorm,
}  # fmt: skip
