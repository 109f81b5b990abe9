from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from headway.errors import ConfigError
from headway.evaluation.evaluate import evaluate
from headway.evaluation.request import EvaluationRequest
from headway.evaluation.task_file import Question, Task, packaged_task, read_task
from headway.evaluation.task_requests import split_tokens, task_requests
from headway.evaluation.task_results import TaskResult, compare_tasks

LETTERS = {letter: place for place, letter in enumerate("abcdefghijklmnopqrstuvwxyz \n:?ABC", 10)}


def by_letter(text: str) -> list[int]:
    return [LETTERS[letter] for letter in text]


def write(path: Path, *lines: object) -> Path:
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    return path


def test_answers_are_places_letters_or_choices(tmp_path: Path) -> None:
    choices = ["red", "B", "blue"]
    path = write(tmp_path / "t.jsonl", *({"question": "q", "choices": choices, "answer": answer} for answer in (2, "c", "blue", "B")), "")
    assert [question.answer for question in read_task(path).questions] == [2, 2, 2, 1]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{", "t.jsonl:1 is no JSON"), ("[]", "no JSON object"), ({"question": 1, "choices": ["a", "b"], "answer": 0}, '"question" must be a text'),
        ({"question": "q", "choices": ["a"], "answer": 0}, '"choices" must be 2 to 64 texts'), ({"question": "q", "choices": ["a", ""], "answer": 0}, "choices"),
        ({"question": "q", "choices": ["a", "b"], "answer": 2}, '"answer" must be a place from 0 to 1'),
        ({"question": "q", "choices": ["a", "b"], "answer": "C"}, "answer"), ({"question": "q", "choices": ["a", "b"], "answer": True}, "answer"), ("", "no questions"),
    ],
)  # fmt: skip
def test_files_that_are_wrong_are_refused_with_the_line(tmp_path: Path, line: object, said: str) -> None:
    with pytest.raises(ConfigError, match=r".") as refused:
        read_task(write(tmp_path / "t.jsonl", line))
    assert said in refused.value.message
    assert refused.value.reason == "evaluation_task"


def test_examples_are_not_asked(tmp_path: Path) -> None:
    path = write(tmp_path / "t.jsonl", *({"question": f"q{i}", "choices": ["a", "b"], "answer": i % 2} for i in range(4)))
    task = read_task(path, 2)
    assert [each.question for each in task.examples] == ["q0", "q1"]
    assert [each.question for each in task.questions] == ["q2", "q3"]
    with pytest.raises(ConfigError, match="none is left"):
        read_task(path, 4)


def test_requests_have_the_tokens_of_context_and_choice() -> None:
    task = Task("t", (Question("who is it", ("a cat", "me"), 1),), (Question("what", ("x", "yes"), 1),))
    [[first, second]] = task_requests(task, by_letter, (5,), 9, 1000)
    shown = "what yes\n\nwho is it"
    assert first.tokens == (5, *by_letter(f"{shown} a cat"))
    assert first.targets == tuple(by_letter(" a cat"))
    assert second.targets == tuple(by_letter(" me"))


def test_spaces_at_the_end_of_a_context_belong_to_the_choice() -> None:
    assert split_tokens("who is  ", " me", by_letter) == (by_letter("who is"), by_letter("   me"))


def test_an_empty_context_begins_with_the_opening() -> None:
    [[first, _]] = task_requests(Task("t", (Question("", ("a", "b"), 0),)), by_letter, (), 9, 1000)
    assert (first.tokens, first.start) == ((9, *by_letter(" a")), 1)
    with pytest.raises(ConfigError, match="empty"):
        task_requests(Task("t", (Question("", ("a", "b"), 0),)), by_letter, (), None, 1000)


def test_what_is_too_long_loses_its_beginning() -> None:
    [[first, _]] = task_requests(Task("t", (Question("abcdefgh", ("xyz", "a"), 0),)), by_letter, (), 9, 6)
    assert first.tokens == tuple(by_letter("gh xyz"))
    assert first.targets == tuple(by_letter(" xyz"))


QUESTIONS = Task("t", (Question("1", ("a", "bbbb"), 0), Question("2", ("a", "bbbb"), 1), Question("3", ("cc", "dd"), 0)))


def test_accuracy_by_sum_and_by_length() -> None:
    result = TaskResult(QUESTIONS, (np.array([-2.0, -4.0]), np.array([-2.0, -4.0]), np.array([-3.0, -1.0])))
    assert result.answers == [0, 0, 1]
    assert result.normalised_answers == [1, 1, 1]  # -2 / 1 against -4 / 4
    figures = result.as_json()
    assert (figures["acc"], figures["acc_norm"]) == (pytest.approx(1 / 3), pytest.approx(1 / 3))
    values = [1.0, 0.0, 0.0]
    assert figures["acc_stderr"] == pytest.approx(np.std(values, ddof=1) / 3**0.5)


def test_changed_answers_are_counted_question_by_question() -> None:
    base = TaskResult(QUESTIONS, (np.array([0.0, -1]), np.array([0.0, -1]), np.array([0.0, -1])))
    other = TaskResult(QUESTIONS, (np.array([-1, 0.0]), np.array([-1, 0.0]), np.array([0.0, -1])))
    found = compare_tasks(other, base)
    assert (found.changed, found.lost, found.gained, found.asked) == (2, 1, 1, 3)
    assert found.drop.value == 0
    assert found.p == 1


def test_a_model_knows_what_it_was_trained_on(trained: Path, tmp_path: Path) -> None:
    """Whole sentences against sentences whose words are in another order."""
    path = write(
        tmp_path / "t.jsonl",
        {"question": "The old farmer walked slowly to the", "choices": ["market and sold three brown horses.", "horses and brown three sold market."], "answer": 0},
        {"question": "A small dog slept under the", "choices": ["rain fell table while the.", "table while the rain fell on the roof."], "answer": 1},
    )
    found = evaluate(str(trained), EvaluationRequest((), (read_task(path),), dtype="float32"))
    assert found.measured is not None
    assert found.measured.tasks[0].as_json()["acc"] == 1
    assert found.decision == "cannot tell"  # without a text and a baseline


def test_the_packaged_questions() -> None:
    task = packaged_task()
    assert task.packaged
    assert len(task.questions) == 100
    assert len({question.question for question in task.questions}) == 100
    assert all(len(set(question.choices)) == 4 for question in task.questions)
    places = [question.answer for question in task.questions]
    assert all(20 <= places.count(place) <= 30 for place in range(4))  # a model that always takes one place learns nothing
