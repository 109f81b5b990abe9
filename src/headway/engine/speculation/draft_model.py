"""A smaller model with the same vocabulary guesses: its likeliest token, then the likeliest behind that, and so on."""

from __future__ import annotations

from collections.abc import Sequence as Many
from dataclasses import dataclass

import torch

from headway.engine.sequence import Sequence
from headway.engine.speculation.proposer import Ask
from headway.engine.speculation.sequence_state import DraftCache, state_of
from headway.kernels.paged_kv import PagedKV
from headway.kvcache.manager import KVCacheManager
from headway.kvcache.runs import Run, forward_batch
from headway.models.causal_lm import CausalLM
from headway.models.recorded_forward import Forward


@dataclass(slots=True)
class _Guessing:
    """A sequence in one call of `propose`: `text` are its tokens and the guesses so far, `start` what of it the cache has."""

    ask: Ask
    cache: DraftCache
    text: list[int]
    start: int
    count: int  # to compute now

    @property
    def complete(self) -> bool:
        return self.start + self.count == len(self.text)


class DraftModelProposer:
    """The draft model has a cache of its own, in which it follows each sequence: the prompt when it is first asked for, then what is
    new. What it wrote for guesses that turned out wrong is overwritten. A sequence that its cache has no room for gets no drafts, and
    one whose prompt is longer than `budget` tokens gets some once several calls have read it.
    """

    def __init__(self, model: CausalLM, forward: Forward, storage: PagedKV, manager: KVCacheManager, known_tokens: int, budget: int):
        """`known_tokens`: ids from there on are no tokens."""
        self.seconds_per_token = 0.0  # until it is measured
        self._model = model
        self._forward = forward
        self._storage = storage
        self._kv = manager
        self._known_tokens = known_tokens
        self._budget = budget

    @torch.inference_mode()
    def propose(self, asks: Many[Ask]) -> list[list[int]]:
        budget = self._budget
        working: list[_Guessing] = []
        for ask in asks:
            cache = self._followed(ask.sequence)
            text = list(ask.sequence.tokens)
            guessing = _Guessing(ask, cache, text, cache.computed, min(len(text) - cache.computed, budget))
            ahead = ask.limit - 1 if guessing.complete else 0
            if guessing.count > 0 and self._kv.grow(cache.table, guessing.start + guessing.count + ahead):
                budget -= guessing.count
                working.append(guessing)
        found: dict[int, list[int]] = {}
        while working:
            self._round(working)
            for guessing in working:
                cache, tokens = guessing.cache, guessing.ask.sequence.tokens
                cache.known, cache.guesses = len(tokens), guessing.text[len(tokens) :]
                cache.computed = guessing.start + guessing.count
                found[id(guessing.ask)] = cache.guesses
                guessing.start, guessing.count = cache.computed, 1
            working = [g for g in working if g.start < len(g.text) and 0 < len(g.cache.guesses) < g.ask.limit]
        return [found.get(id(ask), []) for ask in asks]

    def _round(self, working: list[_Guessing]) -> None:
        """Compute the next tokens of all, and add a guess to those texts that are complete."""
        rows, row = [], -1
        for guessing in working:
            row += guessing.count
            if guessing.complete:
                rows.append(row)
        runs = [Run(g.text, g.cache.table.blocks, g.start, g.count) for g in working]
        hidden = self._forward(forward_batch(runs, rows, self._kv.block_size), self._storage)
        if rows:
            logits = self._model.logits(hidden[: len(rows)])
            best = iter(logits[:, : self._known_tokens].argmax(-1).tolist())
            for guessing in [g for g in working if g.complete]:
                guessing.text.append(next(best))

    def _followed(self, sequence: Sequence) -> DraftCache:
        """The cache of the sequence, in which nothing but its own tokens counts as computed, and the last of them does not."""
        state = state_of(sequence)
        cache, tokens = state.cache, sequence.tokens
        if cache is None:
            cache = state.cache = DraftCache(self._kv.new_table())
            shared = self._kv.find_prefix(sequence.hashes, len(tokens))
            self._kv.adopt(cache.table, shared)
            cache.known = cache.computed = len(shared) * self._kv.block_size
        else:
            new = tokens[cache.known : cache.known + len(cache.guesses)]
            right = next((i for i, (a, b) in enumerate(zip(new, cache.guesses, strict=False)) if a != b), len(new))
            cache.computed = min(cache.computed, cache.known + right, len(tokens) - 1)
            cache.known, cache.guesses = max(cache.known, cache.computed), []
        self._kv.publish(cache.table, sequence.hashes, cache.computed)
        return cache

    def preempted(self, sequence: Sequence) -> None:
        state = sequence.speculation
        if state is not None and state.cache is not None:
            self._kv.free(state.cache.table)
            state.cache = None

    def ended(self, sequence: Sequence) -> None:
        self.preempted(sequence)
