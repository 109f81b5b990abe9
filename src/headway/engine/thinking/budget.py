"""`thinking_token_budget`: reasoning that is longer is ended by its end mark, token by token, and the answer goes on from there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headway.artifacts.tokenizer import Tokenizer
from headway.engine.sampling_params import SamplingParams

_PROMPT_TOKENS = 32  # at the end of a prompt, in which its last mark would stand


@dataclass(frozen=True, slots=True)
class ThinkingBudget:
    """Of one request. Marks are found as bytes, since a model may write one in several tokens, and more than one way.

    `opens`: reasoning has begun when the answer does.
    """

    tokens: int
    begin: bytes
    end: bytes
    end_ids: tuple[int, ...]
    opens: bool
    token_bytes: Callable[[int], bytes]

    @staticmethod
    def of(params: SamplingParams, prompt: list[int], tokenizer: Tokenizer) -> ThinkingBudget | None:
        """None for a request without one. What the prompt ends with tells whether reasoning has begun, or else the marks do."""
        if params.thinking_token_budget is None:
            return None
        marks = params.thinking_marks
        last = tokenizer.decode(prompt[-_PROMPT_TOKENS:], skip_special_tokens=False).rstrip()
        opens = last.endswith(marks.begin) or (marks.opens and not last.endswith(marks.end))
        end_ids = tuple(tokenizer.encode(marks.end, add_special_tokens=False))
        return ThinkingBudget(params.thinking_token_budget, marks.begin.encode(), marks.end.encode(), end_ids, opens, tokenizer.token_bytes)


class ThinkingProgress:
    """Where one sequence stands. It follows from the output alone: a step may be computed again, and a copy may look at other tokens."""

    __slots__ = ("_budget", "_forced_from", "_read", "_spent", "_tail", "_thinks")

    def __init__(self, budget: ThinkingBudget):
        self._budget = budget
        self._thinks = budget.opens
        self._read = 0  # output tokens
        self._spent = 0  # of them inside of reasoning
        self._tail = b""  # last bytes, too few for a mark
        self._forced_from = 0 if budget.opens and budget.tokens == 0 else None  # number of output tokens when the budget was spent

    def forced(self, tokens: list[int], num_prompt: int) -> int | None:
        """The token that must come next; None = any. `tokens` are prompt and output, as many as before or more."""
        count = len(tokens) - num_prompt
        while self._read < count:
            self._take(tokens[num_prompt + self._read])
        if self._forced_from is None:
            return None
        place = count - self._forced_from
        return self._budget.end_ids[place] if place < len(self._budget.end_ids) else None

    def _take(self, token: int) -> None:
        self._read += 1
        self._spent += self._thinks
        mark = self._budget.end if self._thinks else self._budget.begin
        seen = self._tail + self._budget.token_bytes(token)
        if mark in seen:
            self._thinks = not self._thinks
            self._forced_from = None
            seen = seen[seen.index(mark) + len(mark) :]
            mark = self._budget.end if self._thinks else self._budget.begin
        if self._thinks and self._spent >= self._budget.tokens and self._forced_from is None:
            self._forced_from = self._read
        self._tail = seen[-(len(mark) - 1) :] if len(mark) > 1 else b""
