"""Sequences for tests that need no scheduler."""

from __future__ import annotations

from typing import Any

from headway.engine.sampling_params import SamplingParams
from headway.engine.sequence import Request, Sequence
from headway.kvcache.manager import BlockTable


def make_sequence(prompt: list[int], output: list[int] | None = None, *, eos: tuple[int, ...] = (), order: int = 0, **params: Any) -> Sequence:
    sampling = SamplingParams(**params)
    bad_words_ids = params.get("bad_words_ids")
    if bad_words_ids:
        sampling.bad_words_ids = bad_words_ids
    request = Request("r", prompt, sampling)
    sequence = Sequence(request, 0, sampling, prompt + (output or []), BlockTable(b""), frozenset(eos), 10_000, order, num_prompt=len(prompt))
    request.sequences.append(sequence)
    return sequence
