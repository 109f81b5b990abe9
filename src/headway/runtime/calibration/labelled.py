"""Labelled examples: a JSONL file in which every line is a decisions body with the right answers beside it.

`{"state": ..., "questions": {ID: QUESTION}, "answers": {ID: ANSWER}}`; an answer is the key of the right option (choice),
true or false (noul), the number of the right level (score), or the list of all right labels (set).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

from headway.decisions.question import Content, Question
from headway.errors import ConfigError, RequestError
from headway.wire.decision_body import read_decision_body
from headway.wire.decisions import InvalidQuestion

MAX_LINE_BYTES: Final = 32 << 20
MAX_EXAMPLES: Final = 1_000_000
_TYPES: Final = ("choice", "noul", "score", "set")


@dataclass(frozen=True, slots=True)
class Labelled:
    """A question and its answer. `truth` are indices of the right options: one, but for a set any number."""

    question: Question
    truth: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LabelledState:
    """One line."""

    line: int
    state: Content
    examples: tuple[Labelled, ...]


def read_labelled(path: Path) -> list[LabelledState]:
    """Raises ConfigError (`invalid_labelled_data`) with the number of the line; never with its text."""
    found: list[LabelledState] = []
    count = 0
    try:
        with path.open("rb") as file:
            for number, raw in _lines(file, path):
                found.append(_state(path, number, raw))
                count += len(found[-1].examples)
                if count > MAX_EXAMPLES:
                    _wrong(path, number, f"more than {MAX_EXAMPLES:,} examples")
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}", reason="invalid_labelled_data", param="data") from error
    if not found:
        raise ConfigError(f"{path} has no examples", reason="invalid_labelled_data", param="data")
    return found


def _lines(file: Any, path: Path) -> Iterator[tuple[int, bytes]]:
    number = 0
    while raw := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(raw) > MAX_LINE_BYTES:
            _wrong(path, number, f"the line is longer than {MAX_LINE_BYTES >> 20} MiB")
        if raw.strip():
            yield number, raw


def _state(path: Path, number: int, raw: bytes) -> LabelledState:
    try:
        fields = json.loads(raw)
    except (ValueError, RecursionError):
        _wrong(path, number, "it is no JSON")
    if not isinstance(fields, dict):
        _wrong(path, number, "a line must be an object")
    answers = fields.pop("answers", None)
    if not isinstance(answers, dict):
        _wrong(path, number, "answers must be an object: question id -> answer")
    try:
        request = read_decision_body(fields)
    except RequestError as error:
        _wrong(path, number, error.message)
    if request.main is None or request.states or request.media:
        _wrong(path, number, "a line holds one state of text or JSON and its questions; states and media are not read here")
    if unknown := sorted(answers.keys() - request.main.questions.keys()):
        _wrong(path, number, f"answers to {len(unknown)} questions that are not asked")
    examples = []
    for at, (name, question) in enumerate(request.main.questions.items(), 1):
        where = f"question {at}"
        if isinstance(question, InvalidQuestion):
            _wrong(path, number, f"{where}: {question.message}")
        if name not in answers:
            _wrong(path, number, f"{where} has no answer")
        examples.append(Labelled(question, _truth(path, number, where, question, answers[name])))
    return LabelledState(number, request.main.state, tuple(examples))


def _truth(path: Path, number: int, where: str, question: Question, answer: Any) -> tuple[int, ...]:
    keys = {option.key: index for index, option in enumerate(question.options)}
    if question.type not in _TYPES:
        _wrong(path, number, f"{where}: {question.type} questions have no temperature; calibrated are {', '.join(_TYPES)}")
    if question.type == "set":
        if not isinstance(answer, list) or not all(isinstance(key, str) and key in keys for key in answer):
            _wrong(path, number, f"{where}: the answer to a set must be a list of its labels")
        return tuple(sorted({keys[key] for key in answer}))
    expected: Mapping[str, str] = {"choice": "the key of one of the options", "noul": "true or false", "score": "the number of one of the levels"}
    if question.type == "noul":
        wanted = {True: "true", False: "false"}.get(answer) if isinstance(answer, bool) else None
    elif question.type == "score":
        wanted = str(answer) if isinstance(answer, int) and not isinstance(answer, bool) else None
    else:
        wanted = answer if isinstance(answer, str) else None
    if wanted is None or wanted not in keys:
        _wrong(path, number, f"{where}: the answer to a {question.type} must be {expected[question.type]}")
    return (keys[wanted],)


def _wrong(path: Path, number: int, problem: str) -> NoReturn:
    raise ConfigError(f"{path}, line {number}: {problem}", reason="invalid_labelled_data", param="data", fix="See docs/runtime.md for the format.")
