"""Drafter: which chunks of a step get drafts, and whether drafting pays at all."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from headway.engine.sequence import Sequence
from headway.engine.speculation.acceptance import Acceptance
from headway.engine.speculation.draft_lengths import Costs, paying_lengths
from headway.engine.speculation.proposer import Ask, Proposer
from headway.engine.speculation.sequence_state import state_of
from headway.engine.step_plan import Chunk

_log = logging.getLogger(__name__)
_HOPE = Acceptance(right=8.0, wrong=2.0, memory=0.98)  # of an engine that has not drafted yet
_OWN_WEIGHT, _OWN_MEMORY = 3.0, 0.9
PROBE_AFTER = 64  # steps without drafts, after which a sequence tries again
OFF_AFTER = 32  # choices in a row against all drafts, after which drafting counts as switched off


@dataclass(frozen=True, slots=True)
class DraftLimits:
    """`drafts` for one sequence in a step, `rows` of logits in a step, `positions` of a sequence that the proposer can read."""

    drafts: int
    rows: int
    positions: int


def speculates(sequence: Sequence) -> bool:
    """Whether drafts may stand behind this sequence: not when its prompt is just read."""
    return sequence.request.readout is None


class Drafter:
    """Asks a proposer for guesses, and the measured costs for how many are worth computing.

    There is one rule for one sequence, for the whole engine and for large batches (`paying_lengths`), and it is asked in every step:
    a sequence whose guesses are mostly wrong gets none, nor does anybody when the batch alone keeps the cores busy. What is not
    drafted for PROBE_AFTER steps is tried again once, so that a text that begins to repeat itself is noticed. `costs` None: all
    drafts that there are.
    """

    def __init__(self, proposer: Proposer, limits: DraftLimits, costs: Costs | None):
        self.limits = limits
        self.costs = costs
        self.active = True
        self._proposer: Proposer | None = proposer
        self._acceptance = _HOPE.follower(_HOPE.right + _HOPE.wrong, _HOPE.memory)
        self._told = False
        self._refusals = 0

    def drafts(self, chunks: Iterable[Chunk], budget: int, tokens: int) -> Iterator[tuple[Chunk, list[int]]]:
        """Of the chunks of a step with `tokens` tokens, those that are to get drafts; together at most `budget`."""
        sampling = [c for c in chunks if c.samples]
        room = min(budget, self.limits.rows - len(sampling))
        chosen = [(c, most) for c in sampling if c.count == 1 and (most := self._most(c.sequence)) > 0]
        if self._proposer is None or room <= 0 or not chosen:
            return
        try:
            yield from self._within(room, self._guesses(self._proposer, chosen, tokens, len(sampling)))
        except Exception:
            _log.exception("drafting failed; the engine goes on without speculative decoding")
            self._proposer, self.active = None, False

    def _most(self, sequence: Sequence) -> int:
        """The last token that may be sampled needs no draft in its place, and no row behind it."""
        if not speculates(sequence):
            return 0
        left = sequence.max_tokens_total - sequence.num_tokens - 1
        return min(self.limits.drafts, left, self.limits.positions - sequence.num_tokens)

    def _within(self, room: int, guesses: list[tuple[Chunk, list[int]]]) -> Iterator[tuple[Chunk, list[int]]]:
        for chunk, tokens in guesses:
            if kept := tokens[:room]:
                room -= len(kept)
                yield chunk, kept

    def _guesses(self, proposer: Proposer, chosen: list[tuple[Chunk, int]], tokens: int, sampled: int) -> list[tuple[Chunk, list[int]]]:
        if self.costs is None or proposer.seconds_per_token == 0:
            guesses = self._asked(proposer, chosen)
            if self.costs is None:
                return guesses
            lengths = self._lengths([(c, len(g)) for c, g in guesses], tokens, sampled, self.costs)
            return [(c, g[:n]) for (c, g), n in zip(guesses, lengths, strict=True)]
        lengths = self._lengths(chosen, tokens, sampled, self.costs)
        return self._asked(proposer, [(c, n) for (c, _), n in zip(chosen, lengths, strict=True)])

    def _asked(self, proposer: Proposer, wanted: list[tuple[Chunk, int]]) -> list[tuple[Chunk, list[int]]]:
        wanted = [(c, n) for c, n in wanted if n > 0]
        answers = proposer.propose([Ask(c.sequence, n) for c, n in wanted]) if wanted else []
        return [(c, answer[:n]) for (c, n), answer in zip(wanted, answers, strict=True) if answer]

    def _lengths(self, offers: list[tuple[Chunk, int]], tokens: int, sampled: int, costs: Costs) -> list[int]:
        """For each chunk, of which so many drafts are on offer."""
        if not offers:
            return []
        states = [state_of(c.sequence) for c, _ in offers]
        for state in states:
            if state.acceptance is None:
                state.acceptance = self._acceptance.follower(_OWN_WEIGHT, _OWN_MEMORY)
        rates = [s.acceptance.rate for s in states if s.acceptance is not None]
        lengths = paying_lengths(rates, [n for _, n in offers], tokens, sampled, costs)
        self._judge(any(lengths), max(rates), tokens, costs)
        for i, state in enumerate(states):
            state.passed_over = 0 if lengths[i] else state.passed_over + 1
            if state.passed_over >= PROBE_AFTER:
                state.passed_over, lengths[i] = 0, offers[i][1]
        return lengths

    def _judge(self, pays: bool, rate: float, tokens: int, costs: Costs) -> None:
        """Notice when drafting has ended or begun to pay; the log hears of it once."""
        self._refusals = 0 if pays else self._refusals + 1
        self.active = self._refusals < OFF_AFTER
        if not self.active and not self._told:
            self._told = True
            drafts = self.limits.drafts
            plain, longer = costs.step(np.array([float(tokens), float(tokens + drafts)]))
            _log.warning(
                "Speculative decoding switched itself off: at most %.0f %% of the guesses are expected to be right, and a step of %d tokens takes %.2f times as long with "
                "%d more. It tries again now and then (headway:speculation_active tells whether it is on; this line is not repeated).",
                100 * rate, tokens, (longer + drafts * costs.round) / plain, drafts,
            )  # fmt: skip

    def verified(self, chunks: Iterable[Chunk]) -> tuple[tuple[int, int], ...]:
        """Learn from a step; of each draft how many tokens were proposed and accepted."""
        found = []
        for chunk in chunks:
            if chunk.drafts:
                proposed, accepted = len(chunk.drafts), len(chunk.drafts) - chunk.rejected
                found.append((proposed, accepted))
                self._acceptance.add(proposed, accepted)
                own = state_of(chunk.sequence).acceptance
                if own is not None:
                    own.add(proposed, accepted)
        return tuple(found)

    def preempted(self, sequence: Sequence) -> None:
        if self._proposer is not None:
            self._proposer.preempted(sequence)

    def ended(self, sequence: Sequence) -> None:
        if self._proposer is not None:
            self._proposer.ended(sequence)
        sequence.speculation = None
