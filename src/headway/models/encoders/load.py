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
from headway.kernels.choice import default_kernels, without_integers
from headway.kernels.interface import Kernels
from headway.models.encoders.encoder import Encoder
from headway.models.encoders.plan import EncoderPlan, plan_encoder
from headway.models.fill import Progress
from headway.models.load import check_dtype


def load_encoder(
    source: ModelCard | Path, dtype: torch.dtype, kernels: Kernels | None = None, *, prefix: str | None = None, int8: bool = False,
    progress: Progress | None = None,
) -> Encoder:  # fmt: skip
    """`plan_encoder` and `load_planned_encoder` in one. `source` may be a folder in Hugging Face layout.

    Raises ArtifactError and NotBuiltError as they do, ConfigError (`unsupported_dtype`).
    """
    card = source if isinstance(source, ModelCard) else card_of_path(source, str(source))
    return load_planned_encoder(plan_encoder(card, prefix), dtype, kernels, int8=int8, progress=progress)


def load_planned_encoder(
    plan: EncoderPlan, dtype: torch.dtype, kernels: Kernels | None = None, *, int8: bool = False, progress: Progress | None = None
) -> Encoder:
    """Read, convert to `dtype` (float32 or bfloat16) and pack the weights, one matrix at a time; `progress(done, total)` in
    checkpoint bytes.

    `int8`: matrices of the layers are integers of 8 bits, or what the checkpoint has of 4 or 8, and products read inputs of 8 bits;
    `dtype` is what lies between them. Without it packed weights are dequantized, so that answers are those of the numbers that are stored.

    Raises ConfigError (`unsupported_dtype`), NotBuiltError for int8 of an encoder that is run by transformers."""
    check_dtype(dtype)
    found = kernels or default_kernels(dtype)
    if int8:
        plan = plan.in_int8()
    else:
        found = without_integers(found)
    return plan.load(dtype, found, progress or (lambda done, total: None))
