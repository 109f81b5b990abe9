"""operating_point.json: thresholds and long-input policy that were measured for a head, or the pair that a grounded head reads."""

from __future__ import annotations

import hashlib
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from headway.errors import ArtifactError
from headway.runtime.model_facts import WindowSpec

FILE: Final = "operating_point.json"
_COMPARISONS: Final[Mapping[str, bool]] = {"score >= threshold": True, "score > threshold": False}
_GROUNDED_COMPARISONS: Final[Mapping[str, bool]] = {"greater_or_equal": True, "strictly_greater": False}


@dataclass(frozen=True, slots=True)
class ScorePoint:
    """A label is selected when its score passes its threshold; `inclusive`: equal passes."""

    thresholds: tuple[float, ...]
    inclusive: bool
    window: WindowSpec | None
    max_document_tokens: int | None


@dataclass(frozen=True, slots=True)
class GroundedPoint:
    """`template` with {question} and {context} is the first text, the answer the second. `positive` is the label that means
    "not supported"."""

    template: str
    positive: int
    threshold: float
    inclusive: bool
    max_input_tokens: int | None

    def passes(self, probability: float, threshold: float | None = None) -> bool:
        bound = self.threshold if threshold is None else threshold
        return probability >= bound if self.inclusive else probability > bound

    def first_text(self, question: str, context: str) -> str:
        # One pass over the template: braces in the texts stay what they are.
        values = {"question": question, "context": context}
        parts = string.Formatter().parse(self.template)
        return "".join(literal + (values[name] if name is not None else "") for literal, name, _, _ in parts)


def sha256_of(folder: Path) -> str:
    return hashlib.sha256((folder / FILE).read_bytes()).hexdigest()


def score_point(point: Mapping[str, Any], labels: Sequence[str]) -> ScorePoint:
    """Raises ArtifactError (`operating_point_invalid`)."""
    _expect(point.get("score_type") == "independent_sigmoid", "score_type", "independent_sigmoid", point.get("score_type"))
    comparison = point.get("comparison")
    _expect(comparison in _COMPARISONS, "comparison", " or ".join(_COMPARISONS), comparison)
    _expect(point.get("labels") == list(labels), "labels", f"those of the head, {list(labels)}", point.get("labels"))
    thresholds = point.get("thresholds")
    _expect(isinstance(thresholds, list) and len(thresholds) == len(labels) and all(_is_share(t) for t in thresholds),
            "thresholds", f"{len(labels)} numbers from 0 to 1", thresholds)  # fmt: skip
    assert isinstance(thresholds, list)
    window, most = _input_policy(point.get("input_policy"))
    return ScorePoint(tuple(float(t) for t in thresholds), _COMPARISONS[str(comparison)], window, most)


def _input_policy(policy: Any) -> tuple[WindowSpec | None, int | None]:
    if policy is None:
        return None, None
    _expect(isinstance(policy, dict), "input_policy", "an object", policy)
    strategy = policy.get("strategy")
    _expect(strategy == "overlapping_content_windows", "input_policy.strategy", "overlapping_content_windows", strategy)
    tokens = _count(policy, "window_tokens_including_special_tokens", 3)
    overlap = _count(policy, "overlap_content_tokens", 0)
    _expect(overlap < tokens, "input_policy.overlap_content_tokens", f"less than {tokens}", overlap)
    return WindowSpec(tokens, overlap), _count(policy, "max_document_tokens_including_special_tokens", tokens)


def grounded_point(point: Mapping[str, Any], labels: Sequence[str]) -> GroundedPoint:
    """Raises ArtifactError (`operating_point_invalid`)."""
    pair = point.get("input_pair")
    _expect(isinstance(pair, list) and len(pair) == 2 and isinstance(pair[0], str) and pair[1] == "answer", "input_pair",
            'a template and "answer"', pair)  # fmt: skip
    assert isinstance(pair, list)
    _expect(_fields(pair[0]) == ["context", "question"], "input_pair", "a template that names {question} and {context} once each", pair[0])
    _expect(len(labels) == 2 and "supported" in labels, "labels", "two labels, one of them supported", list(labels))
    stated = point.get("label2id")
    _expect(stated == {label: i for i, label in enumerate(labels)}, "label2id", f"that of the head, {list(labels)}", stated)
    threshold = point.get("token_threshold")
    _expect(_is_share(threshold), "token_threshold", "a number from 0 to 1", threshold)
    assert isinstance(threshold, int | float)
    comparison = point.get("threshold_comparison")
    _expect(comparison in _GROUNDED_COMPARISONS, "threshold_comparison", " or ".join(_GROUNDED_COMPARISONS), comparison)
    most = _count(point, "max_input_tokens", 8) if "max_input_tokens" in point else None
    return GroundedPoint(pair[0], 1 - list(labels).index("supported"), float(threshold), _GROUNDED_COMPARISONS[str(comparison)], most)


def _fields(template: str) -> list[str]:
    try:
        found = [(name, spec, turn) for _, name, spec, turn in string.Formatter().parse(template) if name is not None]
    except ValueError:
        return []
    return sorted(name for name, _, _ in found) if all(not spec and not turn for _, spec, turn in found) else []


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _count(holder: Mapping[str, Any], name: str, least: int) -> int:
    value = holder.get(name)
    _expect(isinstance(value, int) and not isinstance(value, bool) and value >= least, name, f"an integer from {least} up", value)
    assert isinstance(value, int)
    return value


def _expect(right: bool, name: str, expected: str, found: Any) -> None:
    if not right:
        raise ArtifactError(f"{FILE}: {name} must be {expected}, found {found!r:.120}", reason="operating_point_invalid",
                            param=name, fix="Download the package again.")  # fmt: skip
