"""FP8 as vLLM and DeepSeek store it: 8-bit floats with one scale, one for each output, or one for each block.

`weight` float8 [out, in] with `weight_scale` [], [1] or [out, 1], or with `weight_scale_inv` [out/rows, in/columns] when the section has
`weight_block_size`. Both multiply, whatever the name says. Scales of activations are not needed to compute in 16 or 32 bits.
"""

from __future__ import annotations

from dataclasses import dataclass

from headway.quantization.checkpoint_format import Stored
from headway.quantization.claim_fields import Claim
from headway.quantization.packed_weight import PackedLayout
from headway.quantization.scaled_numbers import FLOAT8, Blocks, scaled_layout, sides_of


@dataclass(frozen=True, slots=True)
class Fp8:
    """`blocks` None = every weight says by its scales."""

    blocks: Blocks | None
    endings: frozenset[str] = frozenset({"weight", "weight_scale", "weight_scale_inv"})
    unused: frozenset[str] = frozenset({"input_scale", "input_scale_ub", "activation_scale", "output_scale"})

    def layout_of(self, module: str, stored: Stored) -> tuple[PackedLayout, tuple[int, int]] | None:
        scale = next((name for name in ("weight_scale_inv", "weight_scale") if name in stored), None)
        weight = stored.get("weight")
        if weight is None or (scale is None and weight.dtype not in FLOAT8):
            return None
        if scale is None:
            scale = "weight_scale_inv" if self.blocks else "weight_scale"  # missing: said as for all formats
        blocks = self.blocks
        if blocks is None or scale == "weight_scale":
            blocks = Blocks(None, None) if scale not in stored or stored[scale].elements == 1 else Blocks(1, None)
        return scaled_layout(weight.dtype, stored, blocks, FLOAT8, scale=scale)


def fp8(claim: Claim) -> Fp8:
    """Raises ArtifactError (`invalid_quantization`)."""
    return Fp8(None if claim.get("weight_block_size") is None else sides_of(claim, claim, "weight_block_size"))
