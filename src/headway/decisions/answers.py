"""Scores -> answers, in the form of System One and of the model runtime. The first option wins ties."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from headway.decisions.asking import Scored
from headway.decisions.confidence import choice_confidence, score_confidence
from headway.decisions.question import Question
from headway.decisions.reader import FloatArray
from headway.decisions.row import ItemFailure
from headway.wire.decisions import Dialect

_DEFAULT_THRESHOLD: Final = 0.5


@dataclass(slots=True)
class PartAnswer:
    """What is said about one state, in the order of its questions."""

    answers: dict[str, dict[str, Any]] = field(default_factory=dict)
    spans: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    sets: dict[str, dict[str, Any]] = field(default_factory=dict)
    thresholds: dict[str, float] = field(default_factory=dict)
    span_heads: dict[str, str] = field(default_factory=dict)
    input_tokens: int = 0

    def body(self) -> dict[str, Any]:
        """`answers`, what there is of the rest, `usage`."""
        extra = {"spans": self.spans, "sets": self.sets, "thresholds": self.thresholds, "span_heads": self.span_heads}
        usage = {"input_tokens": self.input_tokens, "output_tokens": 0}
        return {"answers": self.answers, **{name: value for name, value in extra.items() if value}, "usage": usage}

    def fail(self, name: str, kind: str | None, failure: ItemFailure) -> None:
        message = {} if failure.message is None else {"message": failure.message}
        self.answers[name] = {**({} if kind is None else {"type": kind}), "error": failure.code, **message}

    def add(self, name: str, question: Question, scored: Scored, dialect: Dialect) -> None:
        """The answer to one question."""
        more = _extras(scored) | _abstention(question, scored) | ({"input_coverage": "complete"} if question.require_full_input else {})
        if question.type == "choice":
            self.answers[name] = _choice(question, scored, dialect) | more
        elif question.type == "noul":
            self.answers[name] = {"type": "noul", "noul": float(softmax(scored.logits)[1])} | more
        elif question.type == "score":
            self.answers[name] = _score(question, scored) | more
        else:
            self._add_labels(name, question, scored, more)

    def _add_labels(self, name: str, question: Question, scored: Scored, more: dict[str, Any]) -> None:
        stated = (question.threshold, scored.threshold, scored.reading.threshold)
        threshold = next((each for each in stated if each is not None), _DEFAULT_THRESHOLD)
        self.thresholds[name] = threshold
        found = sigmoid(scored.logits)
        if question.type == "set":
            chances = {option.key: float(p) for option, p in zip(question.options, found, strict=True)}
            selected = [key for key, p in chances.items() if p >= threshold]
            self.sets[name] = {"selected": selected, "probabilities": chances}
            for key, p in chances.items():
                self.answers[f"{name}.{key}"] = {"type": "noul", "noul": p} | more
            return
        self.answers[name] = {"type": "noul", "noul": float(found.max())} | more
        self.spans[name] = [
            {"label": span.label, "start": span.start, "end": span.end, "text": span.text, "probability": span.probability}
            for span in scored.reading.spans
        ]
        if scored.reading.span_head is not None:
            self.span_heads[name] = scored.reading.span_head


def _choice(question: Question, scored: Scored, dialect: Dialect) -> dict[str, Any]:
    p = softmax(scored.logits)
    answer: dict[str, Any] = {
        "type": "choice",
        "choice": question.options[int(p.argmax())].key,
        "probabilities": {option.key: float(each) for option, each in zip(question.options, p, strict=True)},
        "confidence": choice_confidence(p),
    }
    if scored.abstain is not None:
        name = "abstain_probability" if dialect == "runtime" else "x_abstain_probability"
        answer[name] = float(softmax(np.append(scored.logits, scored.abstain))[-1])
    return answer


def _score(question: Question, scored: Scored) -> dict[str, Any]:
    p = softmax(scored.logits)
    return {
        "type": "score",
        "score": float(p @ np.arange(len(p))),
        "legend": {option.key: option.description for option in question.options},
        "probabilities": {option.key: float(each) for option, each in zip(question.options, p, strict=True)},
        "confidence": score_confidence(p),
    }


def _abstention(question: Question, scored: Scored) -> dict[str, Any]:
    """Whether the likeliest answer is less likely than the operator's calibration wants it to be."""
    if scored.threshold is None or question.type in ("set", "span"):
        return {}
    return {"x_abstain": bool(softmax(scored.logits).max() < scored.threshold)}


def _extras(scored: Scored) -> dict[str, Any]:
    extras = {f"x_{name}": value for name, value in scored.reading.extras.items()}
    if scored.shortlist is not None:
        extras |= {"x_shortlist_rounds": scored.shortlist.rounds, "x_shortlist_groups": scored.shortlist.groups}
    return extras


def softmax(logits: FloatArray) -> FloatArray:
    shifted = np.exp(logits - logits.max())
    out: FloatArray = shifted / shifted.sum()
    return out


def sigmoid(logits: FloatArray) -> FloatArray:
    """Without overflow on either side."""
    out: FloatArray = 0.5 * (1.0 + np.tanh(0.5 * logits))
    return out
