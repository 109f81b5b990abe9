"""How many drafts pay, against trying all; and that what does not pay is switched off, said once, and tried again."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.engine.speculation.draft_lengths import MARGIN, Costs, paying_lengths
from headway.engine.speculation.drafter import OFF_AFTER, PROBE_AFTER
from headway.engine.speculation.step_cost import StepCost
from tests.engine.byte_tokenizer import ids
from tests.engine.speculation.prefix_core import PrefixCore, Remembering

FLAT = Costs(lambda tokens: 1.0 + 0.001 * tokens)
DEAR = Costs(lambda tokens: 1.0 + 0.15 * tokens)  # a draft of one token pays from a rate of 0.19 on


def speed(rates: list[float], lengths: tuple[int, ...], tokens: int, costs: Costs) -> float:
    gain = sum(rate**j for rate, length in zip(rates, lengths, strict=True) for j in range(1, length + 1))
    seconds = float(costs.step(np.array([float(tokens + sum(lengths))]))[0]) + max(lengths, default=0) * costs.round
    return (len(rates) + gain) / seconds


@settings(max_examples=150)
@given(
    rates=st.lists(st.floats(0.01, 0.99), min_size=1, max_size=3),
    most=st.lists(st.integers(0, 4), min_size=3, max_size=3),
    prompt=st.integers(0, 40),
    knee=st.integers(1, 20),
    slope=st.floats(0.01, 1.0),
    guess=st.sampled_from([0.0, 0.05, 0.5]),
)
def test_the_best_of_all_is_found(rates, most, prompt, knee, slope, guess) -> None:
    costs = Costs(lambda tokens: 1.0 + slope * np.maximum(tokens - knee, 0.0), guess)
    most, tokens = most[: len(rates)], len(rates) + prompt
    found = tuple(paying_lengths(rates, most, tokens, len(rates), costs))
    assert all(n <= m for n, m in zip(found, most, strict=True))
    best = max(speed(rates, n, tokens, costs) for n in itertools.product(*(range(m + 1) for m in most)))
    plain = speed(rates, (0,) * len(rates), tokens, costs)
    if any(found):
        assert speed(rates, found, tokens, costs) >= plain * MARGIN * (1 - 1e-9)
    if guess == 0.0:  # where rounds cost nothing, taking what adds most is best
        assert speed(rates, found, tokens, costs) >= (best if best > plain * MARGIN * (1 + 1e-9) else plain) * (1 - 1e-9)


def test_costs_between_and_beyond_what_was_measured() -> None:
    cost = StepCost(np.array([1.0, 4.0, 8.0]), np.array([2.0, 2.0, 6.0]))
    assert cost(np.array([1.0, 3.0, 6.0, 8.0, 16.0])).tolist() == [2.0, 2.0, 4.0, 6.0, 12.0]


def world(wrong: float, costs: Costs, answers: dict[tuple[str, int], list[int]]) -> PrefixCore:
    return PrefixCore(proposer=Remembering(answers, wrong, random.Random(4)), costs=costs, drafts=4)


@pytest.fixture(scope="module")
def answers() -> dict[tuple[str, int], list[int]]:
    plain = PrefixCore()
    ask(plain)
    return plain.answers()


def ask(core: PrefixCore, count: int = 300) -> None:
    core.add("a", ids("abc"), max_tokens=count, ignore_eos=True, seed=1)
    core.run()


def test_wrong_guesses_on_dear_steps_are_switched_off_and_tried_again(answers, caplog: pytest.LogCaptureFixture) -> None:
    core = world(0.95, DEAR, answers)
    ask(core)
    assert core.steps[-1].drafting is False
    drafted = [i for i, s in enumerate(core.steps) if s.drafts]
    probes = [b - a for a, b in itertools.pairwise(drafted) if b - a > 10]
    assert probes
    assert set(probes) == {PROBE_AFTER}
    assert len(drafted) < 30 + len(core.steps) // PROBE_AFTER
    told = [r.getMessage() for r in caplog.records if "switched itself off" in r.getMessage()]
    assert len(told) == 1
    assert "times as long" in told[0]


def test_it_comes_back_when_guesses_become_right(answers) -> None:
    core = world(1.0, DEAR, answers)
    core.add("a", ids("abc"), max_tokens=300, ignore_eos=True, seed=1)
    while core.core.steps < OFF_AFTER + 20:
        core.step()
    assert core.steps[-1].drafting is False
    core.drafter._proposer.wrong = 0.0
    core.run()
    assert core.steps[-1].drafting is True
    assert core.accepted > 100


def test_right_guesses_on_flat_steps_stay_on(answers) -> None:
    core = world(0.1, FLAT, answers)
    ask(core)
    assert all(s.drafting for s in core.steps)
    assert core.accepted > 200


def test_one_sequence_without_luck_does_not_stop_another(answers) -> None:
    core = world(0.0, DEAR, {**answers, ("b", 0): [0] * 300})
    core.add("b", ids("xyz"), max_tokens=300, ignore_eos=True, seed=2)
    ask(core)
    lucky = [d for s in core.steps for d in s.drafts if d[1] > 0]
    assert sum(a for _, a in lucky) > 200
    assert core.rejected < 80
