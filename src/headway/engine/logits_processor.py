"""What a logits processor of one's own is: the names and the meaning of `vllm.v1.sample.logits_processor` (vLLM 0.32).

    class Ban(LogitsProcessor):
        def __init__(self, vllm_config, device, is_pin_memory): self.banned = {}
        def is_argmax_invariant(self): return False
        def update_state(self, batch_update): process_dict_updates(self.banned, batch_update, lambda params, *_: (params.extra_args or {}).get("ban"))
        def apply(self, logits):
            for row, token in self.banned.items(): logits[row, token] = -float("inf")
            return logits

It is loaded by `--logits-processors package.module:Ban` or `LLM(logits_processors=[Ban])`; requests pass arguments in
`SamplingParams.extra_args`, over HTTP in `vllm_xargs`.
"""

from __future__ import annotations

import abc
import enum
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, overload

import torch

from headway.engine.sampling_params import SamplingParams

T = TypeVar("T")


class MoveDirectionality(enum.Enum):
    """Whether a row goes to another index, or two rows change places."""

    UNIDIRECTIONAL = enum.auto()
    SWAP = enum.auto()


class OutputTokens(Sequence[int]):
    """The tokens generated so far, growing as they are. `tokens` has the prompt in front."""

    def __init__(self, tokens: list[int], num_prompt: int):
        self._tokens = tokens
        self._num_prompt = num_prompt

    def __len__(self) -> int:
        return len(self._tokens) - self._num_prompt

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> list[int]: ...
    def __getitem__(self, index: int | slice) -> int | list[int]:
        picked = range(self._num_prompt, len(self._tokens))[index]
        return [self._tokens[i] for i in picked] if isinstance(picked, range) else self._tokens[picked]


Added = tuple[int, SamplingParams, list[int] | None, Sequence[int]]  # index, parameters, prompt ids, output ids (live)


@dataclass(frozen=True, slots=True)
class BatchUpdate:
    """How the rows changed since the last step. Remove first, then add (an index that is added may have been in use), then
    move. All built-in moves go from the end into a gap."""

    batch_size: int
    removed: Sequence[int]
    added: Sequence[Added]
    moved: Sequence[tuple[int, int, MoveDirectionality]]


class LogitsProcessor(abc.ABC):
    """One object for all requests. Row i of the logits belongs to the request that `update_state` put at index i.

    What is not scheduled in a step is removed, and added again, with the output it has, when it is.
    """

    @classmethod
    def validate_params(cls, sampling_params: SamplingParams) -> None:
        """Raise ValueError for a request whose arguments are wrong; it is answered with 400."""
        return

    @abc.abstractmethod
    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        """`vllm_config` is the EngineConfig, `device` the CPU, `is_pin_memory` false."""

    @abc.abstractmethod
    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """[rows, vocabulary] float32, in place or not -> the same shape. If it raises, each request is tried alone, and
        those that make it raise end with an error; so does a request whose row gets a NaN."""

    @abc.abstractmethod
    def is_argmax_invariant(self) -> bool:
        """True: it never changes which token is the likeliest, and greedy requests do without it; it then sees logits
        divided by the temperature. False: it comes before penalties and temperature."""

    @abc.abstractmethod
    def update_state(self, batch_update: BatchUpdate | None) -> None:
        """Called before `apply` in every step; None when the rows are those of the last step."""


RequestLogitsProcessor = Callable[..., torch.Tensor]  # (output ids, row) or (prompt ids, output ids, row) -> row


class AdapterLogitsProcessor(LogitsProcessor):
    """Wraps functions that treat one request each: say in `new_req_logits_processor` which, or None."""

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        self.req_info: dict[int, Callable[[torch.Tensor], torch.Tensor]] = {}

    @abc.abstractmethod
    def new_req_logits_processor(self, params: SamplingParams) -> RequestLogitsProcessor | None:
        """The function for a request with these parameters."""

    def _bound(self, params: SamplingParams, prompt: list[int] | None, output: Sequence[int]) -> Callable[[torch.Tensor], torch.Tensor] | None:
        function = self.new_req_logits_processor(params)
        if function is None:
            return None
        before = (prompt,) if len(inspect.signature(function).parameters) == 3 else ()
        return lambda row: function(*before, output, row)

    def update_state(self, batch_update: BatchUpdate | None) -> None:
        process_dict_updates(self.req_info, batch_update, self._bound)

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        for index, function in self.req_info.items():
            logits[index] = function(logits[index])
        return logits


def process_dict_updates(
    req_entries: dict[int, T],
    batch_update: BatchUpdate | None,
    new_state: Callable[[SamplingParams, list[int] | None, Sequence[int]], T | None],
) -> bool:
    """Keep a dictionary from row index to state up to date; `new_state` gives None for requests without one.
    Returns whether anything changed."""
    if batch_update is None:
        return False
    before = dict(req_entries)
    for index in batch_update.removed:
        req_entries.pop(index, None)
    for index, params, prompt, output in batch_update.added:
        state = new_state(params, prompt, output)
        if state is None:
            req_entries.pop(index, None)
        else:
            req_entries[index] = state
    for source, target, direction in batch_update.moved:
        left, right = req_entries.pop(source, None), req_entries.pop(target, None)
        if left is not None:
            req_entries[target] = left
        if right is not None and direction is MoveDirectionality.SWAP:
            req_entries[source] = right
    return before != req_entries
