"""The fixed requests of the self-check: one or more for each surface that a model serves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from headway.runtime.loaded_model import Surface
from headway.runtime.model_facts import HeadFacts, ModelFacts
from headway.runtime.selfcheck.media_samples import SAMPLES
from headway.wire.classify import ClassifyInput, ClassifyRequest, GroundedInput, TextInput
from headway.wire.decisions import DecisionPart, DecisionRequest, InvalidQuestion, Option, Question
from headway.wire.embeddings import EmbeddingsRequest, Text
from headway.wire.rerank import RerankRequest

_ENGLISH: Final = "How do I reverse a linked list in Python without recursion?"
_GERMAN: Final = "Bitte rufen Sie Frau Weber unter 030 5550 142 zurück, sie wartet in Berlin."
_STATE: Final = "My Rust program does not compile: the borrow checker says that `names` is moved in the loop."
_CHOICE: Final = Question(
    "choice", "Which field is this about?", (Option("programming", "software and code"), Option("cooking", "food and recipes"))
)
_NOUL: Final = Question("noul", "Is this about a programming language?", (Option("false"), Option("true")))
_SCORE: Final = Question("score", "How technical is this?", (Option("0", "not at all"), Option("1", "somewhat"), Option("2", "very")))
_INPUTS: Final[dict[str, tuple[ClassifyInput, ...]]] = {
    "text": (TextInput(_ENGLISH), TextInput(_GERMAN)),
    "text_pair": (TextInput(_ENGLISH, "It walks the list once and turns each link around."), TextInput(_GERMAN, _ENGLISH)),
    "grounded": (
        GroundedInput(
            answer="The Eiffel Tower is 330 metres high and stands in Lyon.",
            context="The Eiffel Tower in Paris was finished in 1889 and is 330 metres high.",
            question="How high is the Eiffel Tower?",
        ),
    ),
}
_DOCUMENTS: Final = ("Open the account page and choose “Forgot password”.", "The cafeteria opens at eight in the morning.")


@dataclass(frozen=True, slots=True)
class GoldenRequest:
    """`name` is unique for the model and stable: recorded answers are kept under it."""

    name: str
    surface: Surface
    request: Any


def golden_requests(facts: ModelFacts, surfaces: Sequence[Surface]) -> list[GoldenRequest]:
    """In the order of the surfaces. Questions of types that the model does not answer are left out."""
    found: list[GoldenRequest] = []
    for surface in surfaces:
        if surface == "decisions":
            found += _decisions(facts)
        elif surface == "classify":
            found += [_classify(head) for head in facts.heads if head.inputs]
        elif surface == "embeddings":
            found.append(GoldenRequest("embeddings", surface, EmbeddingsRequest((Text(_ENGLISH), Text(_GERMAN)))))
            modalities = facts.embedding.modalities if facts.embedding is not None else ()
            found += [GoldenRequest(f"embeddings/{each}", surface, EmbeddingsRequest((sample,))) for each, sample in SAMPLES.items() if each in modalities]
        else:
            found.append(GoldenRequest("rerank", surface, RerankRequest("How do I reset my password?", _DOCUMENTS)))
    return found


def _decisions(facts: ModelFacts) -> list[GoldenRequest]:
    asked: dict[str, Question | InvalidQuestion] = {question.type: question for question in (_CHOICE, _NOUL, _SCORE) if question.type in facts.question_types}
    if not asked:
        return []
    return [GoldenRequest("decisions", "decisions", DecisionRequest(DecisionPart(_STATE, asked), "runtime"))]


def _classify(head: HeadFacts) -> GoldenRequest:
    inputs = next((_INPUTS[kind] for kind in ("text", "text_pair", "grounded") if kind in head.inputs), _INPUTS["text"])
    return GoldenRequest(f"classify/{head.name}", "classify", ClassifyRequest(inputs, head=head.name))
