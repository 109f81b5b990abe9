"""decisions_planner: a reader's scores become answers. Everything that is the same for all families is here.

A request is one or several states, each with questions. Questions go through the reader in rounds (`asking`), all of a
round about one state in one call; rows of all states and questions of a round go to the model together.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from headway.decisions.answers import PartAnswer
from headway.decisions.asking import Asking, Scored, ask
from headway.decisions.facts import Facts
from headway.decisions.question import Question, Subject
from headway.decisions.reader import DecisionReader, QuestionPlan, Reading
from headway.decisions.row import ItemFailure, Outcome, Row
from headway.decisions.suitability import suited
from headway.errors import ContextLengthError, RequestError
from headway.wire.decisions import DecisionPart, DecisionRequest, InvalidQuestion
from headway.wire.violations import SchemaError, Violation


class DecisionsPlanner:
    """The planner of the surface `decisions` for a model whose rows `reader` makes and reads.

    Its plans take a DecisionRequest and return `{answers, spans?, sets?, thresholds?, span_heads?, states?, usage}`. They
    raise RequestError: SchemaError when no question of the request can be asked, `invalid_request` for media and scan
    budgets that the model does not have, and, in the dialects that have no failed answers, `context_length_exceeded`.
    """

    def __init__(self, reader: DecisionReader, facts: Facts):
        self.reader = reader
        self.facts = facts

    def __call__(self, request: DecisionRequest) -> Generator[Sequence[Row], Sequence[Outcome], dict[str, Any]]:
        _check_request(request, self.facts)
        main = None if request.main is None else _Part(request.main, request, self.reader, self.facts)
        states = {name: _Part(part, request, self.reader, self.facts) for name, part in request.states.items()}
        parts = [*([] if main is None else [main]), *states.values()]
        first = True
        while any(part.is_asking for part in parts):
            rounds = [part.next_round() for part in parts]
            if first:
                _refuse_hopeless(parts)
            first = False
            rows = tuple(chain.from_iterable(plan.rows for plans in rounds for plan in plans))
            outcomes = iter((yield rows) if rows else ())
            for part, plans in zip(parts, rounds, strict=True):
                part.receive([[next(outcomes) for _ in plan.rows] for plan in plans])
        if first:
            _refuse_hopeless(parts)
        return _body(main, states)


def decisions_planner(reader: DecisionReader, facts: Facts) -> DecisionsPlanner:
    """See DecisionsPlanner."""
    return DecisionsPlanner(reader, facts)


def _refuse_hopeless(parts: Sequence[_Part]) -> None:
    """Before anything runs: raise the error of the first state if nothing about any state can be answered."""
    errors = [part.hopeless() for part in parts]
    if errors and errors[0] is not None and all(errors):
        raise errors[0]


def _body(main: _Part | None, states: dict[str, _Part]) -> dict[str, Any]:
    body = PartAnswer().body() if main is None else main.body()
    if states:
        others = {name: part.body_or_error() for name, part in states.items()}
        usage = body.pop("usage")
        usage["input_tokens"] += sum(part.input_tokens for part in states.values())
        body |= {"states": others, "usage": usage}
    return body


def _check_request(request: DecisionRequest, facts: Facts) -> None:
    strange = sorted({media.modality for media in request.media} - set(facts.modalities))
    if strange:
        raise RequestError(f"This model reads {' and '.join(facts.modalities)}, the request holds {' and '.join(strange)} input",
                           param=f"{strange[0]}s", fix="Leave it out, or ask a model that lists the modality in /v1/models.")  # fmt: skip
    if request.max_tokens is not None and "max_scan_tokens" not in facts.limits:
        raise RequestError("options.max_tokens is a scan budget, and this model reads its input in one piece",
                           param="options.max_tokens", fix="Leave it out.")  # fmt: skip


@dataclass(slots=True)
class _Asked:
    """One question on its way. `asking` is None once `result` is there; `tokens` were spent on it so far."""

    name: str
    question: Question | None
    kind: str | None
    subject: Subject
    asking: Asking | None = None
    result: Scored | ItemFailure | None = None
    pending: Sequence[Question] = ()
    tokens: int = 0

    def advance(self, answers: list[Reading | ItemFailure] | None) -> None:
        """Send what the model said (None: start), and keep what is to be asked next, or the result."""
        if self.asking is None:
            return
        try:
            self.pending = next(self.asking) if answers is None else self.asking.send(answers)
        except StopIteration as done:
            self.asking, self.pending, self.result = None, (), done.value


class _Part:
    """One state with its questions."""

    def __init__(self, part: DecisionPart, request: DecisionRequest, reader: DecisionReader, facts: Facts):
        self._given = part
        self._dialect = request.dialect
        self._reader = reader
        whole = Subject(part.state, request.media, request.max_tokens)
        self._asked = [self._begin(name, each, whole, facts) for name, each in part.questions.items()]
        self._waiting: list[tuple[_Asked, list[QuestionPlan | ItemFailure]]] = []

    def _begin(self, name: str, given: Question | InvalidQuestion, whole: Subject, facts: Facts) -> _Asked:
        if isinstance(given, InvalidQuestion):
            return _Asked(name, None, given.type, whole, result=ItemFailure("invalid_question", given.message))
        fitted = suited(given, whole, self._reader, facts)
        if isinstance(fitted, ItemFailure):
            return _Asked(name, given, given.type, whole, result=fitted)
        question, subject = fitted
        largest = self._reader.group_size(subject, question)
        asked = _Asked(name, question, question.type, subject, asking=ask(question, self._reader, largest))
        asked.advance(None)
        return asked

    @property
    def is_asking(self) -> bool:
        return any(asked.asking is not None for asked in self._asked)

    @property
    def input_tokens(self) -> int:
        return sum(asked.tokens for asked in self._asked)

    def next_round(self) -> list[QuestionPlan]:
        """Plan what all questions ask in this round. The plans that need rows, in order."""
        self._waiting = [(asked, []) for asked in self._asked if asked.asking is not None]
        for subject in {id(asked.subject): asked.subject for asked, _ in self._waiting}.values():
            those = [(asked, plans) for asked, plans in self._waiting if asked.subject is subject]
            planned = iter(self._reader.plan(subject, [question for asked, _ in those for question in asked.pending]))
            for asked, plans in those:
                plans += [self._checked(asked, next(planned)) for _ in asked.pending]
        return [plan for _, plans in self._waiting for plan in plans if isinstance(plan, QuestionPlan)]

    def _checked(self, asked: _Asked, plan: QuestionPlan | ItemFailure) -> QuestionPlan | ItemFailure:
        if isinstance(plan, ItemFailure):
            return plan
        if asked.question is not None and asked.question.require_full_input and not plan.complete:
            return ItemFailure("max_length_exceeded", "the model cannot read the whole input, which the question requires")
        asked.tokens += plan.input_tokens
        return plan

    def hopeless(self) -> RequestError | None:
        """The error that a request of this state alone would meet, if none of its questions can be answered."""
        failures = self._failures()
        if any(failure is None for failure in failures):
            return None
        if all(failure is not None and failure.code == "invalid_question" for failure in failures):
            return SchemaError(list(chain.from_iterable(map(self._violations, self._asked))))
        if self._dialect == "runtime":
            return None
        # The other protocols have no failed answers.
        return ContextLengthError(next(f.message or f.code for f in failures if f is not None and f.code != "invalid_question"))

    def _failures(self) -> list[ItemFailure | None]:
        """Of each question what is known to be wrong with it by now."""
        planned = {id(asked): plans for asked, plans in self._waiting}
        found: list[ItemFailure | None] = []
        for asked in self._asked:
            known = [asked.result, *planned.get(id(asked), [])]
            found.append(next((each for each in known if isinstance(each, ItemFailure)), None))
        return found

    def _violations(self, asked: _Asked) -> list[Violation]:
        given = self._given.questions[asked.name]
        if isinstance(given, InvalidQuestion):
            return [violation.under("body", "questions", asked.name) for violation in given.violations]
        failure = next(f for a, f in zip(self._asked, self._failures(), strict=True) if a is asked)
        return [Violation(("body", "questions", asked.name), (failure and failure.message) or "invalid question", "value_error")]

    def receive(self, values: list[list[Outcome]]) -> None:
        """Outcomes of the plans that `next_round` returned."""
        answers = iter(values)
        for asked, plans in self._waiting:
            asked.advance([plan if isinstance(plan, ItemFailure) else _read(plan, next(answers), question)
                           for plan, question in zip(plans, asked.pending, strict=True)])  # fmt: skip
        self._waiting = []

    def body(self) -> dict[str, Any]:
        answer = PartAnswer(input_tokens=self.input_tokens)
        for asked in self._asked:
            if isinstance(asked.result, Scored) and asked.question is not None:
                answer.add(asked.name, asked.question, asked.result, self._dialect)
            elif isinstance(asked.result, ItemFailure):
                answer.fail(asked.name, asked.kind, asked.result)
        return answer.body()

    def body_or_error(self) -> dict[str, Any]:
        """For one of several states: what would be the error of a request of its own is its entry."""
        error = self.hopeless()
        return self.body() if error is None else {"error": {"code": "invalid_request", "message": error.message}}


def _read(plan: QuestionPlan, values: list[Outcome], question: Question) -> Reading | ItemFailure:
    failed = next((value for value in values if isinstance(value, ItemFailure)), None)
    if failed is not None:
        return failed
    reading = plan.read(values)
    scores = np.asarray(reading.scores, dtype=np.float64)
    if scores.shape != (len(question.options),) or not np.isfinite(scores).all():
        return ItemFailure("invalid_model_output", "the model's scores are not finite, or not one for each option")
    return reading


