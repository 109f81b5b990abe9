"""A model that is measured: found, checked, and loaded as `headway serve` would."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import torch

from headway.artifacts.card import ModelCard
from headway.artifacts.quantization_claim import check_claim
from headway.artifacts.tokenizer import Tokenizer, load_tokenizer
from headway.capacity.byte_text import byte_text
from headway.capacity.card_shape import card_shape
from headway.capacity.weight_bytes import NO_INTEGERS, head_copy, held_weight_bytes
from headway.engine.compute_dtype import compute_dtype
from headway.engine.config import EngineConfig
from headway.engine.configured_card import configured_card
from headway.errors import ArtifactError, CapacityError, ConfigError
from headway.evaluation.request import EvaluationRequest
from headway.evaluation.scoring import Progress
from headway.host.cpu_budget import cpu_budget
from headway.host.memory_budget import memory_budget
from headway.kernels.choice import default_kernels
from headway.models.causal_lm import CausalLM
from headway.models.load import load_planned
from headway.models.native import NativePlan
from headway.models.plan import ModelPlan, plan_model

USUAL_LENGTH: Final = 2048
"""Of a model that states no context."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A model that can be loaded. `longest` is how many tokens a sequence may have."""

    reference: str
    card: ModelCard
    tokenizer: Tokenizer
    dtype: torch.dtype
    longest: int

    @property
    def known(self) -> int:
        """Ids below have a text; rows of the output matrix beyond pad it and are no choice."""
        return self.tokenizer.vocab_size

    @property
    def prefix(self) -> tuple[int, ...]:
        """What every sequence begins with."""
        bos = self.tokenizer.bos_id
        return (bos,) if self.tokenizer.adds_bos and bos is not None else ()

    @property
    def opening(self) -> int:
        """The token that stands for an empty context."""
        return self.tokenizer.bos_id if self.tokenizer.bos_id is not None else next(iter(self.tokenizer.eos_ids), 0)


def find_subject(reference: str, request: EvaluationRequest, progress: Progress) -> Subject:
    """Headers, configuration and tokenizer; no weights. Raises ArtifactError, ConfigError, NotBuiltError."""
    config = EngineConfig(reference, dtype=request.dtype, accept_licence=request.accept_licence)
    card = configured_card(config, lambda done: progress(f"fetching {reference}", done))
    _refuse_encoders(card)
    check_claim(card)
    context, max_length = card.context_length, request.max_length
    if max_length is not None and context is not None and max_length > context:
        raise ConfigError(
            f"--max-length {max_length} is more than the {context} tokens that {reference} reads", param="max_length", fix=f"Use at most {context}."
        )
    return Subject(reference, card, load_tokenizer(card), compute_dtype(request.dtype, card), max_length or context or USUAL_LENGTH)


def planned(subject: Subject, card: ModelCard | None = None) -> ModelPlan:
    """Which implementation runs it (with other settings, those of `card`). Raises ArtifactError, NotBuiltError, and CapacityError when
    its weights do not fit the memory that is left."""
    plan = plan_model(card or subject.card, subject.longest)
    copied, integers = 0, NO_INTEGERS
    if isinstance(plan, NativePlan):
        copied, integers = head_copy(plan.card), plan.integers(default_kernels(subject.dtype))
    needed, left = held_weight_bytes(plan.parameters, copied, subject.dtype.itemsize, integers), memory_budget().available
    if needed > left:
        raise CapacityError(
            f"the weights of {subject.reference} take {byte_text(needed)} with {str(subject.dtype).removeprefix('torch.')}, and {byte_text(left)} of memory"
            " are left", param="model", fix="Use --dtype bfloat16 or a smaller model, or evaluate a server with --base-url.",
        )  # fmt: skip
    return plan


def load(subject: Subject, progress: Progress, card: ModelCard | None = None) -> CausalLM:
    """The model with its weights. Raises what `planned` and reading raise."""
    return load_plan(subject, planned(subject, card), progress)


def load_plan(subject: Subject, plan: ModelPlan, progress: Progress) -> CausalLM:
    """On the kernels that serve."""
    torch.set_num_threads(cpu_budget().threads)
    return load_planned(plan, subject.dtype, progress=lambda done, total: progress(f"loading {subject.reference}", done / max(total, 1)))


def _refuse_encoders(card: ModelCard) -> None:
    try:
        kind = card_shape(card).kind
    except CapacityError:  # its configuration does not tell; planning it will
        return
    if kind == "encoder":
        raise ArtifactError(
            f"{card.reference} is an encoder ({card.architecture}), which predicts no next token; perplexity, divergence and questions are measured"
            " on language models", reason="not_a_language_model", param="model", fix="For task and decision models see `vllm-srun evaluate`.",
        )  # fmt: skip
