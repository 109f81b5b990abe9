"""Texts that are no YAML: the place, and what was expected there."""

from __future__ import annotations

import pytest

from headway.router.config.yaml_reading import read_yaml
from headway.router.config.yaml_syntax import HINTS

TEXTS: dict[str, tuple[str, int, int, str]] = {
    "a tab": ("a:\n\tb: 1", 2, 1, "replace the tab"),
    "a colon in a value": ("a: 1\nb: c: d", 2, 5, "into quotes"),
    "a key without a colon": ("key\nother: 1", 2, 6, "Expected one `key: value`"),
    "a block that ends too early": ("a:\n  b: 1\n c: 2", 3, 2, "further left or right"),
    "an open list": ("a: [1, 2\nb: 3", 2, 2, "comma or `]`"),
    "an open mapping": ("a: {x: 1, y: 2\nb: 3", 2, 2, "comma or `}`"),
    "an open quote": ("a: \"x\nb: 1", 2, 5, "closing quote"),
    "a sign that begins nothing": ("a: @x", 1, 4, "begins with this character"),
    "a name that stands for nothing": ("a: *x", 1, 4, "`&name`"),
    "an unknown escape": ('a: "\\q"', 1, 6, "backslash"),
    "an anchor without a name": ("a: & b", 1, 5, "a name after `&`"),
    "a line below a text block": ("a: |\n x\nz", 3, 2, "a `: ` is missing"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_the_place_and_the_hint(name: str) -> None:
    text, line, column, hint = TEXTS[name]
    (found,) = read_yaml(text, {}).diagnostics
    assert (found.reason, found.line) == ("yaml_invalid", line)
    assert f"column {column}:" in found.message
    assert hint in (found.fix or "")


def test_where_an_open_part_began_is_told() -> None:
    (found,) = read_yaml("a: 1\nb: [\n  1,\n  2\nc: 3", {}).diagnostics
    assert "(it began in line 2)" in found.message


def test_every_hint_can_be_given() -> None:
    given = {found.fix for text, *_ in TEXTS.values() for found in read_yaml(text, {}).diagnostics}
    assert {hint for _, hint in HINTS} == given
