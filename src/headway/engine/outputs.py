"""What generation gives back; field names as in vLLM so that code written for it keeps working."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple

from headway.engine.lora.lora_request import LoRARequest
from headway.errors import HeadwayError

if TYPE_CHECKING:  # servers answer before torch is there
    import torch


class OutputKind(Enum):
    """How the outputs of a running request follow each other (vLLM: RequestOutputKind)."""

    CUMULATIVE = "cumulative"  # each carries all text and tokens so far
    DELTA = "delta"  # each carries only what is new
    FINAL_ONLY = "final_only"  # one output, when finished


class Logprob(NamedTuple):
    """Natural log-probability of a token, its 1-based rank in the row, and its text."""

    logprob: float
    rank: int | None = None
    decoded_token: str | None = None


PositionLogprobs = dict[int, Logprob]  # token id -> Logprob; the chosen token first


@dataclass(slots=True)
class CompletionOutput:
    """One of the n sequences of a request; in delta mode only what is new of it."""

    index: int
    text: str
    token_ids: list[int]
    cumulative_logprob: float | None = None
    logprobs: list[PositionLogprobs] | None = None  # one entry for each of token_ids
    finish_reason: str | None = None  # stop | length | abort | error
    stop_reason: int | str | None = None  # the stop token id or string that matched; None for EOS and length
    lora_request: LoRARequest | None = None

    def finished(self) -> bool:
        return self.finish_reason is not None


@dataclass(slots=True)
class RequestOutput:
    """What the engine says about a request. In delta mode `outputs` holds only sequences that have news."""

    request_id: str
    prompt: str | None
    prompt_token_ids: list[int]
    prompt_logprobs: list[PositionLogprobs | None] | None = None  # [0] is None
    outputs: list[CompletionOutput] = field(default_factory=list)
    finished: bool = False
    metrics: dict[str, float] | None = None
    lora_request: LoRARequest | None = None
    num_cached_tokens: int = 0
    failure: HeadwayError | None = None  # why a sequence ended with finish_reason "error", or all with "abort"
    kv_transfer_params: dict[str, Any] | None = None  # where another engine finds the blocks of the prompt, for its request
    pooled: torch.Tensor | None = None  # float32, of a prompt that was read (engine/pooling/readout.py tells the shapes)

    @property
    def error(self) -> str | None:
        """`failure` in words."""
        return None if self.failure is None else self.failure.message
