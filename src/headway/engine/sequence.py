"""Request and Sequence: what the scheduler moves through its queues. A request with n=3 is three sequences."""

from __future__ import annotations

import enum
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from headway.engine.lora.adapter import Adapter
from headway.engine.lora.lora_request import LoRARequest
from headway.engine.pooling.readout import Readout
from headway.engine.sampling_params import SamplingParams
from headway.errors import HeadwayError
from headway.kvcache.block_hash import BlockHash
from headway.kvcache.manager import BlockTable
from headway.kvcache.offload.bring_back import BlockSource

if TYPE_CHECKING:
    from headway.engine.images.prompt_images import PromptImages
    from headway.engine.speculation.sequence_state import SequenceState
    from headway.engine.structured.form import Form, SequenceForm
    from headway.engine.thinking.budget import ThinkingProgress


class Status(enum.Enum):
    WAITING = "waiting"
    RUNNING = "running"
    FINISHED = "finished"


@dataclass(slots=True)
class Times:
    """Monotonic seconds of the events in a sequence's life; 0.0 = not yet."""

    arrival: float = field(default_factory=time.monotonic)
    scheduled: float = 0.0
    first_token: float = 0.0
    last_token: float = 0.0


@dataclass(slots=True, eq=False)
class Request:
    """One call: a prompt, its parameters, and the sequences it became.

    Of many sequences only so many exist as can be of use; `unborn` more are made when others have ended.
    """

    id: str
    prompt_token_ids: list[int]
    params: SamplingParams
    prompt: str | None = None
    priority: int = 0
    cache_salt: str | None = None
    trace_headers: Mapping[str, str] | None = field(default_factory=dict)  # of the caller; None = no span of its own
    sequences: list[Sequence] = field(default_factory=list)
    unborn: int = 0
    prompt_hashes: list[BlockHash] = field(default_factory=list)  # of the full blocks of the prompt, made once for all
    make_sequence: Callable[[int], Sequence] | None = None  # by index
    first_order: int = 0  # place of sequence 0 in the order of arrival; the others follow
    deadline: float | None = None  # on the core's clock; a request that is not done by then is ended
    continues: bool = False  # part of work that was admitted before: queue limits do not count it
    adapter: Adapter | None = None  # changes what the model computes
    form: Form | None = None  # that its answers must have
    readout: Readout | None = None  # the prompt is read, and nothing is generated
    images: PromptImages | None = None  # what stands in the place of some of its tokens

    landing: BlockSource | None = None  # blocks of the prompt that came from another engine; until it is admitted
    hand_over: Callable[[Sequence], dict[str, Any] | None] | None = None  # keeps the blocks of a prompt for another engine, and tells where
    kv_transfer_params: dict[str, Any] | None = None  # what it told

    @property
    def lora_request(self) -> LoRARequest | None:
        """As the caller named the adapter."""
        return None if self.adapter is None else self.adapter.request


@dataclass(slots=True, eq=False)
class Sequence:
    """One stream of tokens.

    There are no phases: `num_computed` tokens have keys and values in the cache, `tokens` (prompt + output) are
    known, and each step lets the first catch up with the second. When it has, the next token is sampled.
    """

    request: Request
    index: int
    params: SamplingParams
    tokens: list[int]
    table: BlockTable
    eos_ids: frozenset[int]
    max_tokens_total: int  # the sequence ends when it has this many tokens, prompt included
    order: int = 0  # of arrival, to break ties
    num_prompt: int = 0
    num_computed: int = 0
    num_cached: int = -1  # prompt tokens found in the prefix cache at first admission; -1 = not admitted yet
    num_prompt_counted: int = 0  # prompt tokens that the statistics have seen, so that a recomputation adds none
    status: Status = Status.WAITING
    hashes: list[BlockHash] = field(default_factory=list)
    finish_reason: str | None = None
    stop_reason: int | str | None = None
    failure: HeadwayError | None = None  # why it ended with "error", or with "abort" although nobody asked for that
    preemptions: int = 0
    times: Times = field(default_factory=Times)
    output_counts: torch.Tensor | None = None  # [vocab] float32, how often each token was generated; only with penalties
    prompt_mask: torch.Tensor | None = None  # [vocab] bool, tokens of the prompt; only with repetition_penalty
    speculation: SequenceState | None = None  # only while the engine drafts for it
    form: SequenceForm | None = None
    thinking: ThinkingProgress | None = None  # only with thinking_token_budget

    @property
    def num_tokens(self) -> int:
        return len(self.tokens)

    @property
    def num_output(self) -> int:
        return len(self.tokens) - self.num_prompt

    @property
    def remaining(self) -> int:
        """Tokens that are known but not computed."""
        return len(self.tokens) - self.num_computed

    @property
    def output_ids(self) -> list[int]:
        return self.tokens[self.num_prompt :]

    def forget_prompt(self) -> None:
        """For a sequence that has ended while others of its request go on: thousands of them must not hold a long prompt each."""
        del self.tokens[: self.num_prompt]
        self.num_prompt = 0
        self.form = None
