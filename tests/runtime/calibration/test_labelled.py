"""Labelled files: what is read, and how mistakes are told without repeating the text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headway.errors import ConfigError
from headway.runtime.calibration.labelled import read_labelled
from headway.runtime.calibration.scoring import score_examples
from tests.runtime.calibration.planted import PlantedModel, draw_sets, question, write


def _line(kind: str, answer: Any, options: int = 3, **more: Any) -> dict[str, Any]:
    return {"state": "secret text", "questions": {"q": question(kind, options)}, "answers": {"q": answer}} | more


@pytest.mark.parametrize(
    ("kind", "answer", "truth"),
    [("choice", "k2", (2,)), ("noul", True, (1,)), ("noul", False, (0,)), ("score", 1, (1,)), ("set", ["k2", "k0"], (0, 2)), ("set", [], ())],
)  # fmt: skip
def test_answers_of_all_types(tmp_path: Path, kind: str, answer: Any, truth: tuple[int, ...]) -> None:
    [state] = read_labelled(write(tmp_path / "d.jsonl", [_line(kind, answer)]))
    assert state.examples[0].truth == truth


def test_several_questions_of_a_state_and_empty_lines(tmp_path: Path) -> None:
    line = {"state": {"a": 1}, "questions": {"x": question("noul", 2), "y": question("choice", 2)}, "answers": {"y": "k1", "x": False}}
    path = tmp_path / "d.jsonl"
    path.write_text(f"\n{json.dumps(line)}\n\n")
    [state] = read_labelled(path)
    assert (state.line, [each.truth for each in state.examples]) == (2, [(0,), (1,)])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "has no examples"),
        ("{", "line 1: it is no JSON"),
        ("[1]", "line 1: a line must be an object"),
        (json.dumps(_line("noul", True)) + "\n" + json.dumps(_line("noul", "yes")), "line 2: question 1: the answer to a noul must be true or false"),
        (json.dumps(_line("choice", "k9")), "question 1: the answer to a choice must be the key of one of the options"),
        (json.dumps(_line("score", 3)), "question 1: the answer to a score must be the number of one of the levels"),
        (json.dumps(_line("score", True)), "question 1: the answer to a score must be"),
        (json.dumps(_line("set", "k1")), "question 1: the answer to a set must be a list of its labels"),
        (json.dumps(_line("choice", "k1") | {"answers": {}}), "question 1 has no answer"),
        (json.dumps(_line("choice", "k1") | {"answers": {"q": "k1", "other": 1}}), "answers to 1 questions that are not asked"),
        (json.dumps(_line("choice", "k1") | {"answers": None}), "answers must be an object"),
        (json.dumps({"state": "x", "answers": {}}), "line 1: .*questions"),
        (json.dumps({"state": "x", "questions": {"q": {"type": "maybe"}}, "answers": {"q": 1}}), "line 1: question 1: "),
        (json.dumps({"state": "x", "questions": {"q": {"type": "span", "instructions": "i", "labels": [{"key": "k0"}]}}, "answers": {"q": []}}),
         "span questions have no temperature"),
    ],
)  # fmt: skip
def test_mistakes_name_the_line_and_keep_the_text(tmp_path: Path, content: str, said: str) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text(content)
    with pytest.raises(ConfigError, match=said) as error:
        read_labelled(path)
    assert error.value.reason == "invalid_labelled_data"
    assert "secret" not in error.value.message


def test_questions_without_scores_are_counted_by_the_reason(tmp_path: Path) -> None:
    lines = [
        {"state": ["too long"], "questions": {"q": question("noul", 2)}, "answers": {"q": True}},
        {"state": [1.0] * 13, "questions": {"q": question("choice", 13)}, "answers": {"q": "k1"}},
        {"state": [1.0, 2.0, 3.0], "questions": {"q": question("choice", 2)}, "answers": {"q": "k1"}},
        {"state": [1.0, 2.0], "questions": {"q": question("choice", 2), "r": question("noul", 2)}, "answers": {"q": "k1", "r": True}},
    ]
    model = PlantedModel()
    done: list[int] = []
    data = score_examples(model, model.planners["decisions"], read_labelled(write(tmp_path / "d.jsonl", lines)), done.append)  # type: ignore[arg-type]
    assert data.skipped == {"max_length_exceeded": 1, "more than 12 options, asked in several rounds": 1, "invalid_model_output": 1}
    assert [each.scores.tolist() for each in data.examples] == [[1.0, 2.0], [1.0, 2.0]]
    assert model.forwards == 1


def test_equal_states_have_equal_shares_and_labels_of_sets_are_examples_of_two(tmp_path: Path) -> None:
    lines = draw_sets(3, 1, 1.0, 1) + draw_sets(3, 2, 1.0, 1)
    model = PlantedModel()
    data = score_examples(model, model.planners["decisions"], read_labelled(write(tmp_path / "d.jsonl", lines)), lambda done: None)  # type: ignore[arg-type]
    shares = [each.share for each in data.examples]
    assert shares[:3] == shares[3:6] == [shares[0]] * 3
    assert shares[6] != shares[0]
    assert all(0 <= share < 1 for share in shares)
    right = {int(key[1:]) for key in lines[0]["answers"]["q"]}
    for index, each in enumerate(data.examples[:3]):
        assert (each.kind, each.options, each.truth) == ("set", 2, int(index in right))
        assert each.scores.tolist() == [0.0, lines[0]["state"][index]]
