"""Form: a constraint that is compiled. SequenceForm: where one sequence stands in it."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import torch
from xgrammar import GrammarMatcher, get_bitmask_shape

from headway.errors import StepError

if TYPE_CHECKING:
    from xgrammar import CompiledGrammar

FAILED: Final = "structured_outputs_failed"
_SECONDS, _SECONDS_PER_TOKEN = 1.0, 0.01  # of this thread, while others wait, that a sequence may spend on its form; common schemas take 0.1 ms for a token


@dataclass(frozen=True, slots=True)
class Form:
    """What all sequences of a request share.

    `special`: ids that are part of no form. `allowed` [words] int32: a mask of the ids that may come where the grammar allows them, None = all. `starts_after`:
    as of StructuredOutputs.
    """

    grammar: CompiledGrammar
    special: frozenset[int] = frozenset()
    allowed: torch.Tensor | None = None
    starts_after: tuple[int, ...] = ()

    def begin(self) -> SequenceForm:
        return SequenceForm(self)


class SequenceForm:
    """State of one sequence. It follows from the tokens that it is shown: computing a sequence again (after preemption, after a step that failed)
    changes nothing, and drafts that were shown behind the tokens are forgotten when other tokens are."""

    __slots__ = ("_form", "_matcher", "_spent", "_start", "_taken")

    def __init__(self, form: Form):
        self._form = form
        self._matcher = GrammarMatcher(form.grammar)
        self._taken: list[int] = []  # output tokens that were looked at
        self._start: int | None = None if form.starts_after else 0  # so many of them come before the form
        self._spent = 0.0  # seconds

    def fill(self, tokens: list[int], num_prompt: int, masks: torch.Tensor, row: int) -> bool:
        """Write into `masks[row]`, [words] int32, which tokens may follow `tokens` (prompt and output). False, and nothing written, when all may: the
        form has not begun.

        Raises StepError when the output has left the form.
        """
        started = time.thread_time()
        self._follow(tokens[num_prompt:])
        if self._start is None:
            return False
        self._matcher.fill_next_token_bitmask(masks, row)
        self._spent += time.thread_time() - started
        if self._spent > _SECONDS + _SECONDS_PER_TOKEN * len(self._taken):
            raise StepError("the form that the request asks for is too ambiguous to be followed", reason=FAILED)
        if self._form.allowed is not None:
            masks[row] &= self._form.allowed
        return True

    def may_begin_with(self, tokens: Iterable[int]) -> bool:
        """Whether one of `tokens` may be the first; the form has begun, and nothing was taken."""
        return not self._next().isdisjoint(tokens)

    def dead_end(self, tokens: list[int], num_prompt: int) -> StepError | None:
        """For an answer that cannot go on with any token: None when it may end where it is. Arguments as of `fill`."""
        self._follow(tokens[num_prompt:])
        if self._is_complete():
            return None
        return StepError("the answer has come to where no token is left that both the form and the other limits of the request allow", reason=FAILED)

    def _is_complete(self) -> bool:
        return self._start is not None and not self._next(within_allowed=False).isdisjoint(self._form.grammar.tokenizer_info.stop_token_ids)

    def _next(self, *, within_allowed: bool = True) -> set[int]:
        size = self._form.grammar.tokenizer_info.vocab_size
        mask = torch.empty(get_bitmask_shape(1, size), dtype=torch.int32)
        self._matcher.fill_next_token_bitmask(mask)
        if within_allowed and self._form.allowed is not None:
            mask[0] &= self._form.allowed
        words: list[int] = mask[0].tolist()
        return {i for i in range(size) if words[i >> 5] >> (i & 31) & 1}

    def _follow(self, output: list[int]) -> None:
        taken = len(self._taken)
        if output[:taken] != self._taken:
            self._forget(next((i for i, (a, b) in enumerate(zip(output, self._taken, strict=False)) if a != b), min(len(output), taken)))
        for token in output[len(self._taken) :]:
            if self._start is not None and (token in self._form.special or not self._matcher.accept_token(token)):
                raise StepError("the answer left the form that the request asks for", reason=FAILED)
            self._taken.append(token)
            if self._start is None and tuple(self._taken[-len(self._form.starts_after) :]) == self._form.starts_after:
                self._start = len(self._taken)

    def _forget(self, kept: int) -> None:
        if self._start is not None:
            back = len(self._taken) - max(kept, self._start)
            if back > 0:
                self._matcher.rollback(back)
            if kept < self._start:
                self._start = None
        del self._taken[kept:]
