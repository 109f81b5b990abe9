"""A trial of a compiled grammar before any answer depends on it: it must allow a first token, and be followed fast."""

from __future__ import annotations

import random
import time
from typing import Final

import numpy as np
from xgrammar import CompiledGrammar, GrammarMatcher, TokenizerInfo, get_bitmask_shape

TOKENS: Final = 48
MOST_SECONDS: Final = 0.75  # of one processor for all of them; common schemas take 2 to 20 ms
_GUESSES: Final = 16  # at a token that does not end the answer


class TrialError(Exception):
    """What is wrong, as a sentence about the grammar."""


def tried(grammar: CompiledGrammar, info: TokenizerInfo, *, may_be_empty: bool = True) -> None:
    """Follow the grammar at random (seeded) for some tokens. `may_be_empty`: whether an answer without a character can be right. Raises TrialError."""
    matcher = GrammarMatcher(grammar)
    mask = np.zeros(get_bitmask_shape(1, info.vocab_size), dtype=np.int32)
    choose, stops = random.Random(0), set(info.stop_token_ids)
    spent = 0.0
    for step in range(TOKENS):
        started = time.process_time()
        matcher.fill_next_token_bitmask(mask)
        spent += time.process_time() - started
        allowed = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")[: info.vocab_size])
        if not len(allowed):
            raise TrialError("it allows nothing, not even an empty answer" if step == 0 else "it leads to where it allows nothing more, not even the end")
        if step == 0 and not may_be_empty and not stops.isdisjoint(allowed.tolist()):
            raise TrialError("it allows nothing: no JSON fits it")
        guesses = (int(allowed[choose.randrange(len(allowed))]) for _ in range(_GUESSES))
        token = next((guess for guess in guesses if guess not in stops), None)
        if token is None:
            return
        started = time.process_time()
        matcher.accept_token(token)
        spent += time.process_time() - started
        if spent > MOST_SECONDS:
            raise TrialError(f"it is too ambiguous: finding out what may come next took {spent:.1f} s for {step + 1} tokens")
