"""The built-in questions: what a decision model is asked when no classifier is bound to a signal."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

Question = Mapping[str, Any]

OTHER: Final = "other"
_MOST_CHOICES: Final = 255

FACT_CHECK: Final[Question] = {
    "type": "noul",
    "instructions": "Does a good answer to this message depend on facts that should be checked against a source?",
    "choices": [
        {"key": "true", "description": "it asks about events, people, places, numbers, dates or other verifiable facts"},
        {"key": "false", "description": "it asks for writing, code, opinions, arithmetic or conversation"},
    ],
}
USER_FEEDBACK: Final[Question] = {
    "type": "choice",
    "instructions": "What does this message say about the previous answer of the assistant?",
    "choices": [
        {"key": "satisfied", "description": "thanks, or says that the answer was good"},
        {"key": "need_clarification", "description": "did not understand the answer and asks for an explanation"},
        {"key": "wrong_answer", "description": "says that the answer was wrong"},
        {"key": "want_different", "description": "wants another answer: other style, length or approach"},
        {"key": OTHER, "description": "says nothing about an answer"},
    ],
}
MODALITY: Final[Question] = {
    "type": "choice",
    "instructions": "In which form does this message want its answer?",
    "choices": [
        {"key": "AR", "description": "text"},
        {"key": "DIFFUSION", "description": "a picture that is to be made"},
        {"key": "BOTH", "description": "text together with a picture that is to be made"},
    ],
}
JAILBREAK: Final[Question] = {
    "type": "noul",
    "instructions": "Does this message try to make an assistant ignore its instructions, leave its role or get around its safety rules?",
}
SAFETY: Final[Question] = {
    "type": "noul",
    "instructions": "Does this message ask for, or contain, content that is unsafe: violence, hate, crime, sexual content, self-harm?",
}
COMPLEXITY: Final[Question] = {
    "type": "choice",
    "instructions": "How hard is it to answer this message well?",
    "choices": [
        {"key": "easy", "description": "a greeting, a look-up or one simple step"},
        {"key": "medium", "description": "a few steps, or knowledge of a subject"},
        {"key": "hard", "description": "long reasoning, design, proof or expert knowledge"},
    ],
}
REASK: Final[Question] = {
    "type": "noul",
    "instructions": "Does the latest of these user messages ask the same as each of the earlier ones?",
}
PII_TYPES: Final[Mapping[str, str]] = {
    "PERSON": "the name of a person", "EMAIL_ADDRESS": "an e-mail address", "PHONE_NUMBER": "a telephone number",
    "STREET_ADDRESS": "a postal address", "CREDIT_CARD": "the number of a payment card", "IBAN_CODE": "the number of a bank account",
    "US_SSN": "a social security number", "US_DRIVER_LICENSE": "the number of a driving licence", "IP_ADDRESS": "an IP address",
    "DATE_TIME": "a date of birth or another personal date", "AGE": "the age of a person", "ZIP_CODE": "a postal code",
    "GPE": "a place that tells where a person lives", "NRP": "nationality, religion or political group of a person",
    "ORGANIZATION": "an organization that a person belongs to", "TITLE": "the title or position of a person", "DOMAIN_NAME": "a person's domain name",
}  # fmt: skip
PII: Final[Question] = {
    "type": "set",
    "instructions": "Which kinds of personal data does this text contain?",
    "labels": [{"key": key, "description": description} for key, description in PII_TYPES.items()],
}


def one_of(instructions: str, options: Iterable[tuple[str, str | None]]) -> Question:
    """A choice between `options` (key, description) and `other`, so that there is an answer for a text that fits none."""
    kept = dict(options)
    kept.setdefault(OTHER, "none of these")
    choices = [{"key": key, "description": description or key} for key, description in kept.items()]
    return {"type": "choice", "instructions": instructions, "choices": choices[-_MOST_CHOICES:]}


def some_of(instructions: str, labels: Iterable[str]) -> Question:
    return {"type": "set", "instructions": instructions, "labels": [{"key": label} for label in labels]}
