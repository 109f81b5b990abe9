"""Token counts of one HTTP request while its outputs arrive."""

from __future__ import annotations

from headway.engine.outputs import RequestOutput
from headway.wire.usage import Usage, usage, usage_json


class UsageCount:
    """Each prompt counts once, however many sequences it has. `with_cached`: also tell the tokens found in the cache."""

    def __init__(self, prompts: int, prompt_tokens: int, with_cached: bool):
        self._cached_of = [0] * prompts
        self._prompt = prompt_tokens
        self._completion = 0
        self._with_cached = with_cached

    def add(self, prompt: int, output: RequestOutput, count_tokens: bool = True) -> None:
        self.begin(prompt, output)
        if count_tokens:
            self._completion += sum(len(sequence.token_ids) for sequence in output.outputs)

    def begin(self, prompt: int, output: RequestOutput) -> None:
        """Note what is known of the prompt before any of the output's tokens is told."""
        self._cached_of[prompt] = output.num_cached_tokens

    @property
    def _cached(self) -> int | None:
        return sum(self._cached_of) if self._with_cached else None

    def whole(self) -> Usage:
        return usage(self._prompt, self._completion, self._cached)

    def json(self) -> bytes:
        return usage_json(self._prompt, self._completion, self._cached)
