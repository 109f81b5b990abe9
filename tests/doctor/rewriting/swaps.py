"""Replacements that hold in a log, in its context, and in the patterns of what is expected."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace

from tests.doctor.judging import Expectation, Known, Material


def swapped(known: Known, swaps: Mapping[str, str], patterns: Mapping[str, str] | None = None) -> Known:
    """`known` with every key of `swaps` replaced by its value, all at once. Keys that are numbers are replaced only where
    the whole number stands. `patterns` replaces whole patterns of the expectation, beside that."""
    if not swaps and not patterns:
        return known
    material = Material(_in_text(known.material.log, swaps), None if known.material.context is None else _in_text(known.material.context, swaps))
    return Known(known.name, material, _in_expectation(known.expectation, swaps, patterns or {}))


def _in_text(data: bytes, swaps: Mapping[str, str]) -> bytes:
    if not swaps:
        return data
    search = re.compile("|".join(map(_whole, sorted(swaps, key=len, reverse=True))))
    return search.sub(lambda found: swaps[found[0]], data.decode("utf-8")).encode()


def _whole(text: str) -> str:
    if re.fullmatch(r"[\d.,]+", text):
        return rf"(?<![\d.,]){re.escape(text)}(?!\d|[.,]\d)"
    start = r"(?<![\d.,])" if text[0].isdigit() else ""
    end = r"(?!\d|\.\d)" if text[-1].isdigit() else ""
    return start + re.escape(text) + end


def _in_expectation(expectation: Expectation, swaps: Mapping[str, str], patterns: Mapping[str, str]) -> Expectation:
    def turned(given: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(patterns.get(pattern, _in_pattern(pattern, swaps)) for pattern in given)

    return replace(
        expectation,
        must_mention=turned(expectation.must_mention),
        must_not=turned(expectation.must_not),
        evidence=turned(expectation.evidence),
        never=turned(expectation.never),
    )


def _in_pattern(pattern: str, swaps: Mapping[str, str]) -> str:
    """Literals inside a regular expression stand there plain or escaped."""
    both = {form: re.escape(new) for old, new in swaps.items() for form in (old, old.replace(".", r"\."))}
    if not both:
        return pattern
    search = re.compile("|".join(rf"(?<![\d.]){re.escape(old)}(?!\d|\\?\.\d)" for old in sorted(both, key=len, reverse=True)))
    return search.sub(lambda found: both[found[0]], pattern)
