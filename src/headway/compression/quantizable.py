"""Which models can be compressed: dense ones that Headway runs natively."""

from __future__ import annotations

from headway.artifacts.card import ModelCard
from headway.artifacts.quantization_claim import check_claim
from headway.errors import ConfigError, NotBuiltError
from headway.models.native import NativePlan, plan_native
from headway.models.registry import ARCHITECTURES


def planned(card: ModelCard) -> NativePlan:
    """Raises ConfigError (`already_quantized`), NotBuiltError (`unsupported_architecture`), and what planning a model raises."""
    check_claim(card)
    if card.quantization is not None and card.format != "gguf":
        method = card.quantization.get("quant_method")
        raise ConfigError(
            f"{card.reference} is quantized already ({method!s:.60}, says {card.quantization.get('source', 'config.json')}): rounding it again would add"
            " to its error", reason="already_quantized", param="model", fix="Name the dense checkpoint, or a GGUF file.",
        )  # fmt: skip
    if card.architecture not in ARCHITECTURES:
        raise NotBuiltError(
            f"{card.architecture or card.model_type!r:.80} is no architecture that can be compressed here; there are {', '.join(ARCHITECTURES)}",
            reason="unsupported_architecture", param="model",
        )  # fmt: skip
    return plan_native(card, card.context_length or 1)
