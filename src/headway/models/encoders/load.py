"""load_encoder: a card or a folder -> an encoder with its weights. Everything is checked before anything is allocated.

    plan = plan_encoder(card)                      # headers and JSON only: sizes, `plan.remaining`
    encoder = load_planned_encoder(plan, torch.float32)
    with WeightReader(plan.card) as reader:        # heads: what is no part of the encoder
        weight = reader.tensor("classifier.weight", torch.float32)

    batch = pack([[101, 7592, 102], [101, 102]])   # token ids of the rows, special ones included
    last = encoder.encode(batch).last              # [5, hidden]
    first_tokens = last[torch.from_numpy(batch.starts[:-1])]
"""

from __future__ import annotations

from pathlib import Path

import torch

from headway.artifacts.card import ModelCard
from headway.artifacts.model_cards import card_of_path
from headway.kernels.choice import default_kernels
from headway.kernels.interface import Kernels
from headway.models.encoders.encoder import Encoder
from headway.models.encoders.plan import EncoderPlan, plan_encoder
from headway.models.fill import Progress
from headway.models.load import check_dtype


def load_encoder(
    source: ModelCard | Path, dtype: torch.dtype, kernels: Kernels | None = None, *, prefix: str | None = None, progress: Progress | None = None
) -> Encoder:  # fmt: skip
    """`plan_encoder` and `load_planned_encoder` in one. `source` may be a folder in Hugging Face layout.

    Raises ArtifactError and NotBuiltError as they do, ConfigError (`unsupported_dtype`).
    """
    card = source if isinstance(source, ModelCard) else card_of_path(source, str(source))
    return load_planned_encoder(plan_encoder(card, prefix), dtype, kernels, progress=progress)


def load_planned_encoder(
    plan: EncoderPlan, dtype: torch.dtype, kernels: Kernels | None = None, *, progress: Progress | None = None
) -> Encoder:
    """Read, convert to `dtype` (float32 or bfloat16) and pack the weights, one matrix at a time; `progress(done, total)` in
    checkpoint bytes. Raises ConfigError (`unsupported_dtype`)."""
    check_dtype(dtype)
    return plan.load(dtype, kernels or default_kernels(dtype), progress or (lambda done, total: None))
