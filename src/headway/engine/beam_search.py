"""Beam search, apart from where the log-probabilities come from: which beams there are, which go on, which are best.

As in vLLM 0.32: each round every open beam is asked for its 2 * width likeliest next tokens; of all extensions the `width`
likeliest go on, and every extension by an end token is set aside. At the end those and the open ones are ordered by
cumulative log-probability / length ** length_penalty, the length counting the prompt and not the end token.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from headway.engine.lora.lora_request import LoRARequest
from headway.engine.outputs import PositionLogprobs
from headway.engine.sampling_params import SamplingParams
from headway.errors import RequestError
from headway.flags.span import Span

_PENALTIES = Span(-32, 32)  # a length to a higher power may be no number any more


@dataclass(frozen=True, slots=True)
class BeamSearchParams:
    """Names as in vLLM. `temperature` changes scores only where log-probabilities are of the processed distribution
    (--logprobs-mode). Raises RequestError with `param` set."""

    beam_width: int
    max_tokens: int
    ignore_eos: bool = False
    temperature: float = 0.0
    length_penalty: float = 1.0
    include_stop_str_in_output: bool = False

    def __post_init__(self) -> None:
        for name in ("beam_width", "max_tokens"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise RequestError(f"{name} must be at least 1, got {value!r}", param=name)
        if self.length_penalty not in _PENALTIES:
            raise RequestError(f"length_penalty must be {_PENALTIES}, got {self.length_penalty!r}", param="length_penalty")
        SamplingParams(temperature=self.temperature)  # checks its range


@dataclass(slots=True)
class BeamSearchSequence:
    """One beam. `tokens` has the prompt in front and the end token, if any, at the end; `logprobs` has one entry for each
    token behind the prompt, the token itself and the alternatives."""

    tokens: list[int]
    logprobs: list[PositionLogprobs] = field(default_factory=list)
    cum_logprob: float = 0.0
    text: str | None = None
    finish_reason: str | None = None  # stop | length; None while it is open
    stop_reason: int | str | None = None
    lora_request: LoRARequest | None = None


@dataclass(slots=True)
class BeamSearchOutput:
    """The best beams, best first; none, and `error`, when the model failed."""

    sequences: list[BeamSearchSequence]
    error: str | None = None


class BeamSearch:
    """The beams of one prompt. Ask for one token after each of `open` with `asking`, hand the rows to `advance`, and
    so on until `done`; then `best`. Of each row a beam keeps its own token and the `kept` likeliest, -1 = all it was given: rows
    of 2 * width alternatives, for each token of each beam, take memory.
    """

    def __init__(
        self, prompt_ids: Sequence[int], params: BeamSearchParams, eos_ids: frozenset[int], max_model_len: int, vocab_size: int, kept: int = -1
    ):
        self._kept = kept
        self.params = params
        self.open = [BeamSearchSequence(list(prompt_ids))]
        self._eos_ids = eos_ids
        self._ended: list[BeamSearchSequence] = []
        self._rounds_left = min(params.max_tokens, max_model_len - len(prompt_ids))
        self._candidates = min(2 * params.beam_width, vocab_size)

    @property
    def asking(self) -> SamplingParams:
        """For the request that extends a beam: one token, of which only the log-probabilities matter."""
        return SamplingParams(max_tokens=1, temperature=self.params.temperature, logprobs=self._candidates, detokenize=False)

    @property
    def done(self) -> bool:
        return self._rounds_left <= 0 or not self.open

    def advance(self, rows: Sequence[PositionLogprobs]) -> None:
        """`rows[i]`: log-probabilities of the token after `open[i]`."""
        extensions: list[tuple[float, BeamSearchSequence, int, PositionLogprobs]] = []
        for beam, row in zip(self.open, rows, strict=True):
            for token, logprob in self._likeliest(row):
                total = beam.cum_logprob + logprob
                if token in self._eos_ids and not self.params.ignore_eos:
                    self._ended.append(self._extended(total, beam, token, row, "stop"))
                else:
                    extensions.append((total, beam, token, row))
        extensions.sort(key=lambda extension: -extension[0])
        self.open = [self._extended(*extension) for extension in extensions[: self.params.beam_width]]
        self._ended = self._ordered(self._ended)
        self._rounds_left -= 1

    def best(self) -> list[BeamSearchSequence]:
        """At most `beam_width` beams, best first."""
        for beam in self.open:
            beam.finish_reason = "length"
        return self._ordered([*self._ended, *self.open])

    def score(self, beam: BeamSearchSequence) -> float:
        length = len(beam.tokens) - (beam.tokens[-1] in self._eos_ids)
        return float(beam.cum_logprob / max(length, 1) ** self.params.length_penalty)

    def _ordered(self, beams: list[BeamSearchSequence]) -> list[BeamSearchSequence]:
        return sorted(beams, key=self.score, reverse=True)[: self.params.beam_width]

    def _likeliest(self, row: PositionLogprobs) -> list[tuple[int, float]]:
        """By rank. The token that was sampled stands first in the row and may be none of the likeliest."""
        ranked = sorted(row.items(), key=lambda item: item[1].rank or 0)[: self._candidates]
        return [(token, entry.logprob) for token, entry in ranked if entry.logprob > -math.inf]

    def _extended(
        self, total: float, beam: BeamSearchSequence, token: int, row: PositionLogprobs, finish_reason: str | None = None
    ) -> BeamSearchSequence:
        own_first = {token: row[token]} | narrowed(row, self._kept)
        return BeamSearchSequence([*beam.tokens, token], [*beam.logprobs, own_first], total, finish_reason=finish_reason)


def narrowed(row: PositionLogprobs, count: int) -> PositionLogprobs:
    """The `count` likeliest; -1 = all."""
    return row if count == -1 else {t: e for t, e in row.items() if 0 < (e.rank or 0) <= count}
