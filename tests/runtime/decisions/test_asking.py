"""Rounds: what a shortlist asks, and that its probabilities are one distribution with the right winner."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.decisions.asking import cut
from tests.runtime.decisions.table_model import TableModel, TableReader, answer


def _choice(logits: list[float]) -> dict[str, object]:
    return {"type": "choice", "instructions": "which?", "criteria": {f"{i}={logit}": None for i, logit in enumerate(logits)}}


@given(st.integers(1, 300), st.integers(2, 60))
def test_groups_hold_everything_once_and_are_of_nearly_equal_size(count: int, largest: int) -> None:
    groups = cut(count, largest)
    assert [i for group in groups for i in group] == list(range(count))
    sizes = [len(group) for group in groups]
    assert max(sizes) <= largest
    assert max(sizes) - min(sizes) <= 1


@given(st.lists(st.floats(-5, 5), min_size=2, max_size=255), st.integers(2, 30))
def test_where_options_do_not_influence_each_other_a_shortlist_changes_nothing(logits: list[float], comfortable: int) -> None:
    """The table model gives an option the same logit in any company, so rounds must give the softmax of all."""
    found = answer(TableModel(TableReader(comfortable)), state="s", questions={"q": _choice(logits)})["answers"]["q"]
    expected = np.exp(np.array(logits) - max(logits))
    expected /= expected.sum()
    assert list(found["probabilities"].values()) == pytest.approx(list(expected), abs=1e-12)
    assert math.fsum(found["probabilities"].values()) == pytest.approx(1)
    assert found["choice"] == list(found["probabilities"])[int(np.argmax(expected))]


def test_a_shortlist_asks_groups_and_then_their_winners() -> None:
    reader = TableReader(comfortable=4)
    model = TableModel(reader)
    found = answer(model, state="s", questions={"q": _choice([float(i) for i in range(10)])})["answers"]["q"]
    asked = [[option.key for option in question.options] for _, question in reader.asked]
    assert asked == [["0=0.0", "1=1.0", "2=2.0", "3=3.0"], ["4=4.0", "5=5.0", "6=6.0"], ["7=7.0", "8=8.0", "9=9.0"], ["3=3.0", "6=6.0", "9=9.0"]]
    assert (found["x_shortlist_rounds"], found["x_shortlist_groups"]) == (2, 3)


def test_winners_above_the_comfortable_number_are_asked_in_groups_again() -> None:
    reader = TableReader(comfortable=4)
    found = answer(TableModel(reader), state="s", questions={"q": _choice([float(i) for i in range(255)])})["answers"]["q"]
    assert found["x_shortlist_rounds"] == 4  # 255 -> 64 -> 16 -> 4
    assert found["choice"] == "254=254.0"
    assert max(len(question.options) for _, question in reader.asked) == 4


def test_a_temperature_belongs_to_the_number_of_options_of_its_round() -> None:
    reader = TableReader(comfortable=2, temperatures={"choice.2": 2.0, "choice": 1.0})
    found = answer(TableModel(reader), state="s", questions={"q": _choice([0, 2, 0, 4])})["answers"]["q"]
    logits = np.array([1 - 1, 1, 2 - 2, 2])  # winners 2 and 4 at temperature 2; losers 1 and 2 behind them
    expected = np.exp(logits) / np.exp(logits).sum()
    assert list(found["probabilities"].values()) == pytest.approx(list(expected))


def test_one_failed_group_fails_the_question_only() -> None:
    options = {f"{i}={i}": None for i in range(7)} | {"x=fail": None}
    questions = {"bad": {"type": "choice", "criteria": options}, "good": _choice([0, 1])}
    answers = answer(TableModel(TableReader(comfortable=4)), state="s", questions=questions)["answers"]
    assert answers["bad"] == {"type": "choice", "error": "unavailable", "message": "told to fail"}
    assert answers["good"]["choice"] == "1=1"


def test_labels_of_a_set_are_asked_in_groups_and_stay_independent() -> None:
    labels = {f"{i}={i - 4}": None for i in range(9)}
    question = {"type": "set", "instructions": "which?", "criteria": labels}
    few = answer(TableModel(TableReader(comfortable=4)), state="s", questions={"q": question})
    many = answer(TableModel(TableReader()), state="s", questions={"q": question})
    assert few["sets"] == many["sets"]
    assert few["sets"]["q"]["selected"] == [f"{i}={i - 4}" for i in range(4, 9)]


def test_ties_go_to_the_first_option() -> None:
    for comfortable in (2, 255):
        found = answer(TableModel(TableReader(comfortable)), state="s", questions={"q": _choice([1, 1, 1, 1])})["answers"]["q"]
        assert found["choice"] == "0=1"
