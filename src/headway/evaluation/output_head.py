"""The output head of a model without its layers: all that is needed of a baseline whose hidden states are known."""

from __future__ import annotations

from typing import Final

from headway.evaluation.scoring import Progress
from headway.evaluation.subject import Subject, load, planned
from headway.evaluation.token_scores import HeadOf
from headway.kernels.torch_backend import TORCH
from headway.models.decoder import Decoder
from headway.models.fill import fill
from headway.models.native import NativePlan
from headway.quantization.weight_reader import WeightReader

_MODULES: Final = ("embedding", "head")  # a tied head takes its weights from the embedding


def load_head(subject: Subject, progress: Progress) -> HeadOf:
    """Of a native model only these weights are read; of others all are, and the layers are let go of."""
    plan = planned(subject)
    if not isinstance(plan, NativePlan):
        return load(subject, progress).head
    weights = [weight for weight in plan.weights if weight.module in _MODULES]
    model = Decoder(plan.config, subject.dtype, TORCH)
    with WeightReader(plan.card) as reader:
        fill(model, plan.card.tensors, weights, reader.read_into, lambda done, total: progress(f"loading the head of {subject.reference}", done / max(total, 1)))
    return model.head
