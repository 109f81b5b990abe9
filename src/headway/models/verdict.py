"""Whether a model can be run, and by what: for people who ask before they load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from headway.artifacts.card import ModelCard
from headway.artifacts.quantization_claim import check_claim
from headway.errors import HeadwayError
from headway.kernels.paged_kv import KVShape
from headway.models.native import NativePlan
from headway.models.plan import plan_model
from headway.models.vision.plan import VisionLanguagePlan


@dataclass(frozen=True, slots=True)
class Verdict:
    """`why` and `reason` (a stable word) are None unless it is refused; then nothing is known of `kv_shape`. `images`: what it makes of them;
    None where it reads text alone."""

    by: Literal["native", "fallback", "refused"]
    why: str | None = None
    reason: str | None = None
    kv_shape: KVShape | None = None
    images: str | None = None


def verdict(card: ModelCard) -> Verdict:
    """What `load_model` would do with the card, without reading weights."""
    try:
        check_claim(card)
        plan = plan_model(card, card.context_length or 1)
    except HeadwayError as error:
        return Verdict("refused", error.message, error.reason)
    images = plan.described if isinstance(plan, VisionLanguagePlan) else None
    return Verdict("native" if isinstance(plan, NativePlan) else "fallback", kv_shape=plan.config.kv_shape, images=images)
