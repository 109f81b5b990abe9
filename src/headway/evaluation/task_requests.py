"""A question as requests, one for each choice: the same tokens as lm-evaluation-harness makes for `output_type: multiple_choice`.

Its template is `doc_to_text: "{{question}}"` with the default delimiters: a space before the choice, an empty line between examples.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from headway.errors import ConfigError
from headway.evaluation.scoring import ScoringRequest
from headway.evaluation.task_file import Task
from headway.evaluation.tokenized_text import Encode

_DELIMITER: Final = " "
_BETWEEN: Final = "\n\n"


def task_requests(task: Task, encode: Encode, prefix: Sequence[int], opening: int | None, longest: int) -> list[list[ScoringRequest]]:
    """For each question its requests, in the order of its choices.

    `encode` adds no special tokens; `prefix` stands before everything; `opening` stands in for a context that is empty. What is longer than
    `longest` loses tokens from the left.
    """
    shown = "".join(f"{each.question}{_DELIMITER}{each.choices[each.answer]}{_BETWEEN}" for each in task.examples)
    return [[_request(shown + each.question, choice, encode, prefix, opening, longest) for choice in each.choices] for each in task.questions]


def _request(context: str, choice: str, encode: Encode, prefix: Sequence[int], opening: int | None, longest: int) -> ScoringRequest:
    before, after = split_tokens(context, _DELIMITER + choice, encode)
    head = [*prefix, *before]
    if not head:
        head = [_known(opening)]
    tokens = [*head, *after][-longest:]
    return ScoringRequest(tuple(tokens), max(len(tokens) - len(after), 1))


def _known(opening: int | None) -> int:
    if opening is None:
        raise ConfigError(
            "a question is empty, and what a sequence of this model begins with is not known", reason="evaluation_task", param="task",
            fix="Name the model's tokenizer, or leave out questions that are empty.",
        )  # fmt: skip
    return opening


def split_tokens(context: str, continuation: str, encode: Encode) -> tuple[list[int], list[int]]:
    """Both are tokenized as one text, and cut where the tokens of the context alone end; spaces at its end belong to what follows."""
    kept = context.rstrip()
    continuation = context[len(kept) :] + continuation
    before = encode(kept) if kept else []
    whole = encode(kept + continuation)
    return before, whole[len(before) :]
