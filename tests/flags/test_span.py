"""Which numbers are inside a span, and how it is written."""

from __future__ import annotations

import math
from typing import Any

import pytest

from headway.engine.config import SPANS, EngineConfig
from headway.errors import ConfigError
from headway.flags.span import Span, whole


@pytest.mark.parametrize(
    ("span", "inside", "outside", "text"),
    [
        (whole(1), [1, 10**400], [0, 1.0, True, None, "1"], "at least 1"),
        (whole(0, 65535), [0, 65535], [-1, 65536], "0 to 65535"),
        (whole(2, also=-1), [-1, 2], [0, 1, -2], "at least 2, or -1"),
        (Span(0, 1, above=True), [1, 1e-300], [0, 1.1], "above 0 and at most 1"),
        (Span(0, 1, below=True), [0, 0.99], [1, -1e-300], "at least 0 and below 1"),
        (Span(0), [0.0, 1e300], [math.nan, math.inf, -math.inf, -1], "at least 0"),
    ],
)
def test_ends(span: Span, inside: list[Any], outside: list[Any], text: str) -> None:
    assert [v for v in inside if v not in span] == []
    assert [v for v in outside if v in span] == []
    assert str(span) == text


@pytest.mark.parametrize("name", SPANS)
@pytest.mark.parametrize("value", [math.nan, math.inf, -(2.0**70), "1"])
def test_an_engine_refuses_numbers_outside(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=f"{name} must be"):
        EngineConfig("m", **{name: value})  # type: ignore[arg-type]
