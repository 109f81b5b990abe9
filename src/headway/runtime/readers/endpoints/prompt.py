"""The segmented prompt: context and question, one segment for each option, a closing line.

Each segment is tokenized by itself, so that an option's last token is the same whatever follows. Text: docs/families.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from headway.decisions.question import Question
from headway.runtime.readers.canonical_text import canonical_text, instructions_text

SUFFIX: Final = "\n\nSelect the single option best supported by the context and instructions.\nDecision:"


@dataclass(frozen=True, slots=True)
class EndpointPrompt:
    """`ends[i]`: the last token of option i; the last token of all is the query."""

    token_ids: tuple[int, ...]
    ends: tuple[int, ...]


def option_text(key: str, description: Any, tag: str = "option") -> str:
    """One option as canonical JSON between tags; no description is `null`."""
    return f"\n<{tag}>\n" + canonical_text({"key": key, "description": description}) + f"\n</{tag}>"


def described_options(question: Question, noul_sides: Mapping[str, str], null_as_key: bool) -> list[tuple[str, Any]]:
    """Keys and what the model reads about them. `noul_sides`: texts for sides that the request leaves open.
    `null_as_key`: a choice without a description is described by its key."""
    described = []
    for option in question.options:
        text = option.description
        if text is None:
            text = noul_sides[option.key] if question.type == "noul" else option.key if null_as_key else None
        described.append((option.key, text))
    return described


def endpoint_prompt(state: Any, question: Question, options: Sequence[tuple[str, Any]], encode: Callable[[str], list[int]]) -> EndpointPrompt:
    """Token ids of one question, and where they are read."""
    ids = encode(
        f"Context:\n{canonical_text(state)}\n\nTask type: {question.type}\nQuestion:\n{instructions_text(question.instructions)}\nOptions:"
    )
    ends = []
    for key, description in options:
        ids = ids + encode(option_text(key, description))
        ends.append(len(ids) - 1)
    return EndpointPrompt((*ids, *encode(SUFFIX)), tuple(ends))
