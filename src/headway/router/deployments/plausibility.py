"""Whether an answer can be true: a runtime is a program of somebody else, and its numbers decide about requests."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

SLACK = 0.02
"""How far the sum of a distribution may be from 1."""


def is_share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def is_distribution(shares: Collection[Any]) -> bool:
    return bool(shares) and all(map(is_share, shares)) and abs(sum(shares) - 1) <= SLACK


def plausible_choice(answer: Mapping[str, Any], keys: Sequence[str], state: Any) -> bool:
    return answer.get("choice") in keys and _covers(answer.get("probabilities"), keys) and is_distribution(answer["probabilities"].values())


def plausible_noul(answer: Mapping[str, Any], keys: Sequence[str], state: Any) -> bool:
    return is_share(answer.get("noul"))


def plausible_score(answer: Mapping[str, Any], keys: Sequence[str], state: Any) -> bool:
    """`keys` are the levels' numbers as text."""
    score = answer.get("score")
    within = isinstance(score, int | float) and not isinstance(score, bool) and 0 <= score <= len(keys) - 1
    return within and _covers(answer.get("probabilities"), keys) and is_distribution(answer["probabilities"].values())


def plausible_set(answer: Mapping[str, Any], keys: Sequence[str], state: Any) -> bool:
    chances, selected = answer.get("probabilities"), answer.get("selected")
    if not _covers(chances, keys) or not isinstance(selected, list):
        return False
    assert isinstance(chances, Mapping)
    return all(map(is_share, chances.values())) and all(key in keys for key in selected) and len(set(selected)) == len(selected)


def plausible_spans(answer: Mapping[str, Any], keys: Sequence[str], state: Any) -> bool:
    spans = answer.get("spans")
    longest = len(state) if isinstance(state, str) else None
    return isinstance(spans, list) and all(isinstance(span, Mapping) and span.get("label") in keys and is_span(span, longest) for span in spans)


def is_span(span: Mapping[str, Any], longest: int | None) -> bool:
    """A range of code points inside of the text, with its probability."""
    start, end = span.get("start"), span.get("end")
    if not (isinstance(start, int) and isinstance(end, int) and 0 <= start < end):
        return False
    return (longest is None or end <= longest) and is_share(span.get("probability"))


PLAUSIBLE: Mapping[str, Callable[[Mapping[str, Any], Sequence[str], Any], bool]] = {
    "choice": plausible_choice,
    "noul": plausible_noul,
    "score": plausible_score,
    "set": plausible_set,
    "span": plausible_spans,
}
"""Type of question -> whether its answer is possible, given the keys of its options and the state it was about."""


def _covers(shares: Any, keys: Sequence[str]) -> bool:
    return isinstance(shares, Mapping) and shares.keys() == set(keys)
