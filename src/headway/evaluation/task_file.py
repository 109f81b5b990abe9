"""Multiple-choice questions from a local file: one JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Final

from headway.errors import ConfigError

MOST_BYTES: Final = 256 << 20
MOST_CHOICES: Final = 64
_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_EXAMPLE: Final = 'Each line is {"question": "...", "choices": ["...", "..."], "answer": 0}; the answer may be a letter or the choice itself.'


@dataclass(frozen=True, slots=True)
class Question:
    """The model continues `question` with a space and one of the `choices`; `answer` is the place of the right one."""

    question: str
    choices: tuple[str, ...]
    answer: int


@dataclass(frozen=True, slots=True)
class Task:
    """`examples` with their answers stand before every question. `packaged` tells the one that comes with Headway."""

    name: str
    questions: tuple[Question, ...]
    examples: tuple[Question, ...] = ()
    packaged: bool = False


def packaged_task() -> Task:
    """Everyday knowledge in unfinished sentences."""
    content = resources.files("headway.evaluation").joinpath("packaged", "questions.jsonl").read_text(encoding="utf-8")
    return Task("headway", _questions("questions.jsonl", content.splitlines()), packaged=True)


def read_task(path: Path, shots: int = 0) -> Task:
    """The first `shots` questions become examples and are not asked. Raises ConfigError (`evaluation_task`) naming file and line."""
    try:
        if path.stat().st_size > MOST_BYTES:
            raise _wrong(f"{path} has more than {MOST_BYTES} bytes")
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise _wrong(f"{path} cannot be read: {error.strerror or error}", "Check path and permissions.") from None
    except UnicodeDecodeError as error:
        raise _wrong(f"{path} is no UTF-8 text (byte {error.start})") from None
    found = _questions(str(path), lines)
    if len(found) <= shots:
        raise _wrong(f"{path} has {len(found)} questions; with --num-fewshot {shots} none is left to ask", "Give fewer examples.")
    return Task(path.stem, found[shots:], found[:shots])


def _questions(place: str, lines: Sequence[str]) -> tuple[Question, ...]:
    found = tuple(_question(f"{place}:{number}", line) for number, line in enumerate(lines, 1) if line.strip())
    if not found:
        raise _wrong(f"{place} has no questions")
    return found


def _question(place: str, line: str) -> Question:
    try:
        fields: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _wrong(f"{place} is no JSON ({error})"[:300]) from None
    if not isinstance(fields, dict):
        raise _wrong(f"{place} is no JSON object")
    question, choices, answer = (fields.get(name) for name in ("question", "choices", "answer"))
    if not isinstance(question, str):
        raise _wrong(f'{place}: "question" must be a text, got {type(question).__name__}')
    if not isinstance(choices, list) or not 2 <= len(choices) <= MOST_CHOICES or not all(isinstance(each, str) and each for each in choices):
        raise _wrong(f'{place}: "choices" must be 2 to {MOST_CHOICES} texts')
    return Question(question, tuple(choices), _answer(place, choices, answer))


def _answer(place: str, choices: list[str], answer: object) -> int:
    found = -1
    if type(answer) is int:
        found = answer
    elif isinstance(answer, str) and answer in choices:
        found = choices.index(answer)
    elif isinstance(answer, str) and len(answer) == 1 and answer.upper() in _LETTERS:
        found = _LETTERS.index(answer.upper())
    if not 0 <= found < len(choices):
        raise _wrong(f'{place}: "answer" must be a place from 0 to {len(choices) - 1}, a letter or one of the choices, got {answer!r:.60}')
    return found


def _wrong(what: str, fix: str = _EXAMPLE) -> ConfigError:
    return ConfigError(what, reason="evaluation_task", param="task", fix=fix)
