"""The prompt of one question: state, instructions and options between special tokens of the backbone's vocabulary."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from headway.artifacts.tokenizer import Tokenizer
from headway.decisions.question import Content, Option, Question
from headway.errors import PackageError
from headway.runtime.long_input.bounded_text import BoundedText

STATE: Final = "<|fim_prefix|>"
QUESTION: Final = "<|fim_middle|>"
OPTION: Final = "<|box_start|>"
OPTION_END: Final = "<|box_end|>"
DECIDE: Final = "<|fim_suffix|>"
DELIMITERS: Final = (STATE, QUESTION, OPTION, OPTION_END, DECIDE)
_SPELLED: Final = re.compile(r"<\|([A-Za-z0-9_]+)\|>")
_SIDES: Final = {"false": "no", "true": "yes"}


@dataclass(frozen=True, slots=True)
class KevPrompt:
    """`ends[i]`: the token that ends option i. The last token of all decides."""

    token_ids: tuple[int, ...]
    ends: tuple[int, ...]


class PromptBuilder:
    """Raises PackageError (`invalid_package`) for a tokenizer without the delimiters."""

    def __init__(self, tokenizer: Tokenizer):
        ids = {token: tokenizer.backend.token_to_id(token) for token in DELIMITERS}
        if missing := ", ".join(token for token, found in ids.items() if found is None):
            raise PackageError(f"the tokenizer lacks {missing}", reason="invalid_package", param="tokenizer",
                               fix="Use the tokenizer of the backbone that the package was trained on.")  # fmt: skip
        self._state, self._question, self._option, self._option_end, self._decide = (int(ids[token] or 0) for token in DELIMITERS)
        self._text = BoundedText(tokenizer)

    def state_ids(self, state: Content, need: int) -> list[int]:
        """Tokens of the state with its delimiter; at least `need` of them where there are so many."""
        return [self._state, *self._text.read(plain(as_text(state)), need).ids]

    def prompt(self, state: Sequence[int], question: Question, need: int) -> KevPrompt:
        """`state` as `state_ids` made it. Texts of the question may end after `need` tokens."""
        instructions = "" if question.instructions is None else as_text(question.instructions)
        ids = [*state, self._question, *self._ids(instructions, need)]
        ends = []
        for option in question.options:
            ids += [self._option, *self._ids(option_text(question, option), need), self._option_end]
            ends.append(len(ids) - 1)
        return KevPrompt((*ids, self._decide), tuple(ends))

    def _ids(self, text: str, need: int) -> Sequence[int]:
        return self._text.read(plain(text), need).ids


def plain(text: str) -> str:
    """No text can be read as a special token, so nobody forges an option."""
    return _SPELLED.sub("<\u00a6\\1\u00a6>", text)


def option_text(question: Question, option: Option) -> str:
    """Levels are their descriptions; other options are named, the sides of a noul no and yes."""
    described = "" if option.description is None else as_text(option.description)
    if question.type == "score":
        return described
    name = _SIDES[option.key] if question.type == "noul" else option.key
    return f"{name}: {described}" if option.description not in (None, "") else name


def as_text(value: Any, depth: int = 0) -> str:
    """JSON as lines: `key: value`, list items after dashes, nested values indented by two."""
    margin = "  " * depth
    if value is None:
        return ""
    if isinstance(value, list):
        return "\n".join(f"{margin}- {as_text(item, depth + 1).lstrip()}" for item in value)
    if isinstance(value, dict):
        return "\n".join(
            f"{margin}{key}:\n{as_text(item, depth + 1)}" if isinstance(item, dict | list) else f"{margin}{key}: {as_text(item)}"
            for key, item in value.items()
        )
    return str(value)
