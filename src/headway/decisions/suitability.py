"""Whether a model can be asked a question, and the question as the model will be asked it."""

from __future__ import annotations

from dataclasses import replace

from headway.decisions.facts import Facts
from headway.decisions.parts import narrowed
from headway.decisions.question import Question, Subject
from headway.decisions.reader import DecisionReader
from headway.decisions.row import ItemFailure


def suited(question: Question, whole: Subject, reader: DecisionReader, facts: Facts) -> tuple[Question, Subject] | ItemFailure:
    """The question with its preset filled in, and the part of the state that it reads."""
    if question.preset is not None:
        known = reader.presets.get(question.preset)
        if known is None:
            names = ", ".join(sorted(reader.presets)) or "none"
            return _invalid(f"preset {question.preset[:80]!r} is unknown; this model has {names}")
        if known.type != question.type:
            return _invalid(f"preset {question.preset!r} is a {known.type} question, not a {question.type} question")
        question = _with_preset(question, known)
    if question.type not in reader.question_types:
        return _invalid(f"this model answers {', '.join(sorted(reader.question_types))} questions, not {question.type}")
    if len(question.options) > reader.max_options:
        return _invalid(f"{len(question.options)} options, the limit of this model is {reader.max_options}")
    if question.truncate and "truncate_tokens" not in facts.limits:
        return _invalid("overflow: truncate needs a model with a truncated view (truncate_tokens in its limits)")
    if question.over is None or reader.reads_parts:
        return question, whole
    part = narrowed(whole.state, question.over)
    if isinstance(part, ItemFailure):
        return part
    return replace(question, over=None), replace(whole, state=part)


def _with_preset(question: Question, known: Question) -> Question:
    return replace(
        known, over=question.over, preset=question.preset,
        threshold=known.threshold if question.threshold is None else question.threshold,
        head=known.head if question.head is None else question.head,
        truncate=question.truncate, require_full_input=question.require_full_input,
    )  # fmt: skip


def _invalid(message: str) -> ItemFailure:
    return ItemFailure("invalid_question", message)
