"""Beam search against all sequences there are, against a plain reference, and against transformers."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from headway import LLM, BeamSearchParams
from headway.engine.beam_search import BeamSearch, BeamSearchSequence
from headway.engine.outputs import Logprob, PositionLogprobs
from headway.errors import ContextLengthError, RequestError
from tests.engine.tiny_folder import complete_tiny_model
from tests.models.tiny_models import TinyModel

VOCAB, EOS = 6, 0
PROMPT = [1, 2]


def table(prefix: tuple[int, ...], seed: int) -> list[float]:
    """Log-probabilities of the next token, a fixed function of the prefix."""
    dice = random.Random(repr((seed, prefix)))
    weights = [dice.random() + 0.01 for _ in range(VOCAB)]
    return [math.log(w / sum(weights)) for w in weights]


def row(prefix: tuple[int, ...], seed: int, wanted: int) -> PositionLogprobs:
    """As the engine gives it: a sampled token first, here the unlikeliest, then the likeliest."""
    values = table(prefix, seed)
    order = sorted(range(VOCAB), key=lambda t: -values[t])
    return {t: Logprob(values[t], order.index(t) + 1, None) for t in (order[-1], *order[:wanted])}


def search(seed: int, params: BeamSearchParams, kept: int = -1) -> list[BeamSearchSequence]:
    beams = BeamSearch(PROMPT, params, frozenset({EOS}), 1000, VOCAB, kept)
    while not beams.done:
        beams.advance([row(tuple(b.tokens), seed, beams.asking.logprobs or 0) for b in beams.open])
    return beams.best()


def total(tokens: tuple[int, ...], seed: int) -> float:
    return sum(table((*PROMPT, *tokens[:i]), seed)[t] for i, t in enumerate(tokens))


def score(tokens: tuple[int, ...], seed: int, penalty: float) -> float:
    length = len(PROMPT) + len(tokens) - (tokens[-1] == EOS)
    return float(total(tokens, seed) / length**penalty)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 10_000), rounds=st.integers(1, 3), penalty=st.sampled_from((0.0, 0.5, 1.0, 2.0, -1.0)), ignore=st.booleans())
def test_a_beam_as_wide_as_the_tree_finds_the_best_of_all_sequences(seed: int, rounds: int, penalty: float, ignore: bool) -> None:
    whole = list(itertools.product(range(VOCAB), repeat=rounds))
    if ignore:
        every = set(whole)
    else:  # up to the first end token
        every = {t[: t.index(EOS) + 1] if EOS in t else t for t in whole}
    want = sorted(every, key=lambda t: -score(t, seed, penalty))
    found = search(seed, BeamSearchParams(VOCAB**rounds, rounds, ignore_eos=ignore, length_penalty=penalty))
    assert [tuple(b.tokens[2:]) for b in found] == want
    for beam, tokens in zip(found, want, strict=True):
        assert beam.cum_logprob == pytest.approx(total(tokens, seed))
        assert beam.finish_reason == ("stop" if tokens[-1] == EOS and not ignore else "length")
        assert [next(iter(r)) for r in beam.logprobs] == list(tokens)


@pytest.mark.parametrize("kept", [0, 1, 3])
def test_a_beam_keeps_of_each_row_its_own_token_and_the_likeliest(kept: int) -> None:
    params = BeamSearchParams(3, 4, ignore_eos=True)
    whole, narrow = search(7, params), search(7, params, kept)
    assert [b.tokens for b in narrow] == [b.tokens for b in whole]
    for full, less in zip(whole, narrow, strict=True):
        for position, (entries, few) in enumerate(zip(full.logprobs, less.logprobs, strict=True), len(PROMPT)):
            own = full.tokens[position]
            assert next(iter(few)) == own
            assert few == {t: e for t, e in entries.items() if t == own or (e.rank or 0) <= kept}


def reference(seed: int, width: int, rounds: int, penalty: float) -> list[tuple[int, ...]]:
    """The same search, written over plain tuples with the whole vocabulary in view."""
    going: list[tuple[int, ...]] = [()]
    ended: list[tuple[int, ...]] = []
    for _ in range(rounds):
        likeliest = {g: sorted(range(VOCAB), key=lambda t, g=g: -table((*PROMPT, *g), seed)[t])[: 2 * width] for g in going}
        grown = [(*g, t) for g in going for t in likeliest[g]]
        ended += [g for g in grown if g[-1] == EOS]
        going = sorted((g for g in grown if g[-1] != EOS), key=lambda g: -total(g, seed))[:width]
    return sorted(ended + going, key=lambda g: -score(g, seed, penalty))[:width]


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 10_000), width=st.integers(1, 4), rounds=st.integers(1, 7), penalty=st.sampled_from((-3.0, 0.0, 1.0, 3.0)))
def test_narrow_beams_equal_the_reference(seed: int, width: int, rounds: int, penalty: float) -> None:
    found = search(seed, BeamSearchParams(width, rounds, length_penalty=penalty))
    assert [tuple(b.tokens[2:]) for b in found] == reference(seed, width, rounds, penalty)


# ---- the engine ----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> TinyModel:
    return complete_tiny_model("smollm", tmp_path_factory.mktemp("beams"))


@pytest.fixture(scope="module")
def llm(tiny: TinyModel) -> LLM:
    return LLM(str(tiny.folder), dtype="float32", max_model_len=96, kv_cache_memory_bytes=32 << 20, max_logprobs=1, max_num_seqs=40)


def oracle(tiny: TinyModel, prompt: list[int], width: int, count: int) -> tuple[list[list[int]], list[float]]:
    """Sequences and their summed log-probabilities by transformers, for which no token is an end here."""
    with torch.no_grad():
        out = tiny.oracle.generate(
            torch.tensor([prompt]), num_beams=width, num_return_sequences=width, max_new_tokens=count, do_sample=False,
            length_penalty=0.0, eos_token_id=None, pad_token_id=0, return_dict_in_generate=True, output_scores=True,
        )  # fmt: skip
    return out.sequences.tolist(), out.sequences_scores.tolist()


def test_beams_equal_those_of_transformers(tiny: TinyModel, llm: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiny.oracle.generation_config, "eos_token_id", None)
    prompts = [[(31 * i + 7 * k) % 150 + 5 for k in range(9 + 12 * i)] for i in range(3)]
    for width in (2, 5):
        found = llm.beam_search(
            [{"prompt_token_ids": p} for p in prompts], BeamSearchParams(width, 12, ignore_eos=True), concurrency_limit=2
        )
        for prompt, output in zip(prompts, found, strict=True):
            sequences, sums = oracle(tiny, prompt, width, 12)
            assert [b.tokens for b in output.sequences] == sequences
            assert [b.cum_logprob for b in output.sequences] == pytest.approx(sums, abs=1e-3)
            assert all(b.text == llm._engine.tokenizer.decode(b.tokens) for b in output.sequences)
    core = llm._engine.core
    assert core.num_requests == 0
    assert core.scheduler.kv.pool.num_free == core.scheduler.kv.pool.num_blocks - 1


def test_beams_ride_on_the_prefix_cache(llm: LLM) -> None:
    computed: list[int] = []
    watch = llm._engine.core.observers
    before, watch.on_step = watch.on_step, lambda stats: computed.append(stats.scheduled_tokens)
    try:
        llm.beam_search({"prompt_token_ids": [9 + k for k in range(64)]}, BeamSearchParams(4, 8, ignore_eos=True))
    finally:
        watch.on_step = before
    assert computed[0] == 64
    assert max(computed[1:]) <= 4 * 17, "a round computes again what fills no block"


def test_the_context_ends_a_search(llm: LLM) -> None:
    (output,) = llm.beam_search({"prompt_token_ids": [7] * 90}, BeamSearchParams(2, 50, ignore_eos=True))
    assert [len(b.tokens) for b in output.sequences] == [96, 96]
    assert {b.finish_reason for b in output.sequences} == {"length"}


def test_a_failing_model_ends_one_search_and_not_the_other(llm: LLM, monkeypatch: pytest.MonkeyPatch) -> None:
    original = llm._engine.core.runner.execute

    def execute(plan: Any) -> Any:
        if any(c.sequence.tokens[0] == 13 for c in plan.chunks):
            raise FloatingPointError("injected")
        return original(plan)

    monkeypatch.setattr(llm._engine.core.runner, "execute", execute)
    bad, good = llm.beam_search([[13, 14, 15], [20, 21]], BeamSearchParams(2, 3, ignore_eos=True))
    assert bad.sequences == []
    assert "FloatingPointError" in str(bad.error)
    assert (len(good.sequences), good.error) == (2, None)


@pytest.mark.parametrize(
    ("param", "given"),
    [
        ("beam_width", {"beam_width": 0}), ("beam_width", {"beam_width": True}), ("max_tokens", {"max_tokens": 0}),
        ("length_penalty", {"length_penalty": math.inf}), ("length_penalty", {"length_penalty": 1e308}), ("length_penalty", {"length_penalty": -33}), ("temperature", {"temperature": 3.0}), ("n", {"beam_width": 41}),
    ],
)  # fmt: skip
def test_parameters_out_of_range_are_refused(llm: LLM, param: str, given: dict[str, Any]) -> None:
    with pytest.raises(RequestError) as caught:
        llm.beam_search("hello", BeamSearchParams(**({"beam_width": 2, "max_tokens": 4} | given)))
    assert caught.value.param == param


def test_a_prompt_that_does_not_fit_is_refused(llm: LLM) -> None:
    with pytest.raises(ContextLengthError):
        llm.beam_search([[5, 6], [7] * 96], BeamSearchParams(2, 4))
