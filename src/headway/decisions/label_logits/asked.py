"""A question -> what is put to a language model: texts whose reply begins with one of some labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from headway.decisions.content import option_text, text_of
from headway.decisions.label_logits.codes import Code
from headway.decisions.question import Option, Question

_DEFAULT_INSTRUCTIONS: Final = {
    "choice": "Which of these fits the text best?",
    "noul": "Is this true of the text?",
    "score": "Which level fits the text best?",
    "set": "Does this label apply to the text?",
}
_REPLY: Final = "Reply with the code of the best answer only."
_REPLY_SIDE: Final = "Reply with {no} or {yes} only."


@dataclass(frozen=True, slots=True)
class Alphabet:
    """`options` for choices, at least 10; `levels` 10 for scores; `sides` no and yes for nouls and labels of sets.

    `words` gives the first tokens of texts as codes, or None where they do not tell the texts apart: then choices are
    answered with the names of their options. None: always with codes. `says_how`: prompts tell how to reply.
    """

    options: tuple[Code, ...]
    levels: tuple[Code, ...]
    sides: tuple[Code, Code]
    words: Callable[[Sequence[str]], tuple[Code, ...] | None] | None = None
    says_how: bool = True


@dataclass(frozen=True, slots=True)
class Asked:
    """`text` follows the state. `codes` in the order of the options, whatever order the text lists them in; for sides: no, yes."""

    text: str
    codes: tuple[Code, ...]
    kind: Literal["codes", "words"] = "codes"


def asked(question: Question, alphabet: Alphabet, rotations: int) -> list[Asked]:
    """A set is asked label by label, a choice with codes `rotations` times (not more often than it has options), all else
    once."""
    stated = question.instructions
    instructions = _DEFAULT_INSTRUCTIONS[question.type] if stated is None else text_of(stated)
    if question.type == "noul":
        return [_sides(instructions, question.options, alphabet)]
    if question.type == "set":
        return [_sides(f"{instructions}\nLabel: {option_text(label)}", (), alphabet) for label in question.options]
    if question.type == "score":
        return [_coded(instructions, question.options, alphabet.levels, _level_text, alphabet)]
    words = alphabet.words and alphabet.words([option.key for option in question.options])
    if words:
        return [Asked(_joined(instructions), words, "words")]
    turns = min(rotations, len(question.options))
    return [_coded(instructions, question.options, alphabet.options, option_text, alphabet, turn * len(question.options) // turns)
            for turn in range(turns)]  # fmt: skip


def _coded(
    instructions: str, options: Sequence[Option], codes: Sequence[Code], shown: Callable[[Option], str], alphabet: Alphabet, first: int = 0
) -> Asked:
    """The option at index `first` is listed first, those before it at the end."""
    count = len(options)
    listed = [f"{codes[place].text}. {shown(options[(first + place) % count])}" for place in range(count)]
    reply = ["", _REPLY] if alphabet.says_how else []
    return Asked(_joined(instructions, *listed, *reply), tuple(codes[(index - first) % count] for index in range(count)))


def _sides(instructions: str, sides: Sequence[Option], alphabet: Alphabet) -> Asked:
    no, yes = alphabet.sides
    meant = [f"{code.text} means: {text_of(side.description)}"
             for code, side in zip((no, yes), sides, strict=False) if side.description is not None]  # fmt: skip
    reply = ["", _REPLY_SIDE.format(no=no.text, yes=yes.text)] if alphabet.says_how else []
    return Asked(_joined(instructions, *meant, *reply), (no, yes))


def _joined(instructions: str, *lines: str) -> str:
    return "\n".join(["", "", f"Question: {instructions}", *lines])


def _level_text(option: Option) -> str:
    return text_of(option.description)
