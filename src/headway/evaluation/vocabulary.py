"""How a model reads text, whether its tokenizer is here or on a server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headway.evaluation.remote import RemoteModel
from headway.evaluation.subject import USUAL_LENGTH, Subject
from headway.evaluation.texts import Text
from headway.evaluation.tokenized_text import Encode, TokenizedText, tokenized, tokenized_by


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """`encode` adds no special tokens. Every sequence begins with `prefix`; `opening` stands for an empty context, where one is known.
    `longest`: tokens of a sequence."""

    encode: Encode
    tokenized: Callable[[Text], TokenizedText]
    prefix: tuple[int, ...]
    opening: int | None
    longest: int


def subject_vocabulary(subject: Subject) -> Vocabulary:
    tokenizer = subject.tokenizer
    return Vocabulary(
        lambda text: tokenizer.encode(text, add_special_tokens=False), lambda text: tokenized(text, tokenizer), subject.prefix, subject.opening,
        subject.longest,
    )  # fmt: skip


def remote_vocabulary(remote: RemoteModel, subject: Subject | None, max_length: int | None) -> Vocabulary:
    """By the tokenizer of `subject`, else by the server's own. The server needs room for one token more. Raises HeadwayError."""
    longest = min(each for each in (max_length, (remote.longest or USUAL_LENGTH + 1) - 1, subject and subject.longest) if each)
    if subject is not None:
        own = subject_vocabulary(subject)
        return Vocabulary(own.encode, own.tokenized, own.prefix, own.opening, longest)
    plain, special = remote.encode("a"), remote.encode("a", special=True)
    prefix = tuple(special[: special.index(plain[0])]) if plain and plain[0] in special else ()
    return Vocabulary(remote.encode, lambda text: tokenized_by(text, remote.encode, prefix), prefix, next(iter(prefix), None), longest)
