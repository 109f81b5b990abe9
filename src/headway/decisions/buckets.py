"""Buckets of option counts: a temperature that fits two options seldom fits twenty.

Source of the bounds: the packages of Laya and the GGUF metadata of llama.cpp (`<type>.<bucket>`).
"""

from __future__ import annotations

from typing import Final

from headway.decisions.question import QuestionType

BUCKETS: Final = ("2", "3-5", "6-10", "11+")
_LARGEST: Final = (2, 5, 10)


def bucket_of(options: int) -> str:
    """The name of the bucket of a question with so many options; one option counts as two."""
    return next((name for name, largest in zip(BUCKETS, _LARGEST, strict=False) if options <= largest), BUCKETS[-1])


def bucket_key(kind: QuestionType, options: int) -> str:
    """ "choice:3-5", ... A noul always has two options, and labels of a set are judged one by one: those have no buckets."""
    return f"{kind}:{bucket_of(options)}" if kind in ("choice", "score") else kind
