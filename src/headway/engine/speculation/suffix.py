"""Suffix decoding: what followed the last tokens most often, in this text or in earlier answers (Oliaro et al. 2024, arXiv:2411.04975).

The continuations of all places where the longest end of the text stands are followed together: the commonest next token is
proposed, those places that had another are dropped, and so on while the proposal's share of all places stays above a floor.
The paper keeps suffix trees; here the places are found by comparing arrays (`token_text`), which for texts of this size is fast
enough and needs 4 bytes a token.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence as Many

import numpy as np

from headway.engine.sequence import Sequence
from headway.engine.speculation.proposer import Ask
from headway.engine.speculation.sequence_state import state_of
from headway.engine.speculation.settings import SpeculationSettings
from headway.engine.speculation.token_text import Ids, Match, TokenText, longest_match

_MOST_REMEMBERED = 1 << 17  # tokens of earlier answers; one comparison of them takes some 20 us
_BORDER = -1  # between answers; no token


class SuffixProposer:
    """Remembers the ends of requests' answers, except of those with a cache salt: what has one must not be felt by others, not even
    in the time that their answers take."""

    seconds_per_token = 0.0

    def __init__(self, settings: SpeculationSettings):
        self._depth = settings.suffix_decoding_max_tree_depth
        self._factor = settings.suffix_decoding_max_spec_factor
        self._floor = settings.suffix_decoding_min_token_prob
        self._most_answers = settings.suffix_decoding_max_cached_requests
        self._answers = TokenText()
        self._lengths: deque[int] = deque()

    def propose(self, asks: Many[Ask]) -> list[list[int]]:
        return [self._guess(ask) for ask in asks]

    def _guess(self, ask: Ask) -> list[int]:
        text = state_of(ask.sequence).text
        text.follow(ask.sequence.tokens)
        own = longest_match(text.ids, text.ids, self._depth)
        if ask.sequence.request.cache_salt is None and len(self._answers):
            other = longest_match(self._answers.ids, text.ids, self._depth)
            if other.length > own.length:
                return self._follow(self._answers.ids, other, ask.limit)
        return self._follow(text.ids, own, ask.limit)

    def _follow(self, text: Ids, match: Match, limit: int) -> list[int]:
        """The likeliest path from the places of `match`, of at most `factor` tokens for each token that matched."""
        ends, all_places = match.ends, len(match.ends)
        out: list[int] = []
        while len(out) < min(limit, int(self._factor * match.length)):
            ends = ends[ends < len(text)]
            following = text[ends]
            following, ends = following[following != _BORDER], ends[following != _BORDER]
            if not len(ends):
                break
            tokens, counts = np.unique(following, return_counts=True)
            best = int(counts.argmax())
            if counts[best] < self._floor * all_places:
                break
            out.append(int(tokens[best]))
            ends = ends[following == tokens[best]] + 1
        return out

    def preempted(self, sequence: Sequence) -> None:
        """The text is still the same."""

    def ended(self, sequence: Sequence) -> None:
        answer = sequence.output_ids[-_MOST_REMEMBERED // 2 :]
        if sequence.request.cache_salt is not None or len(answer) < 2 or not self._most_answers:
            return
        self._answers.extend([_BORDER, *answer])
        self._lengths.append(len(answer) + 1)
        total, drop = len(self._answers), 0
        while total - drop > _MOST_REMEMBERED or len(self._lengths) > self._most_answers:
            drop += self._lengths.popleft()
        if drop:
            self._answers.keep_last(total - drop)
