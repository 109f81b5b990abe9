"""References to the environment."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.router.config.normal_form import escaped
from headway.router.config.substitution import substitute

ENVIRONMENT = {"SET": "value", "EMPTY": "", "DOLLAR": "$SET", "_x1": "low"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("${SET}", "value"),
        ("$SET", "value"),
        ("a${SET}b$SET c", "avalueb" + "value c"),
        ("$SETx", ""),  # another name
        ("${_x1}", "low"),
        ("${EMPTY}", ""),
        ("${EMPTY:-other}", "other"),
        ("${EMPTY-other}", ""),
        ("${UNSET:-other}", "other"),
        ("${UNSET-other}", "other"),
        ("${UNSET:-}", ""),
        ("${SET:-other}", "value"),
        ("${UNSET:-http://a:1/b}", "http://a:1/b"),
        ("$$", "$"),
        ("$${SET}", "${SET}"),
        ("$$$SET", "$value"),
        ("${DOLLAR}", "$SET"),  # what a variable contains is not read again
        ("^a$", "^a$"),
        ("$5", "$5"),
        ("${}", "${}"),
        ("${1A}", "${1A}"),
        ("cost: $ 5", "cost: $ 5"),
    ],
)
def test_forms(text: str, expected: str) -> None:
    assert substitute(text, ENVIRONMENT).text == expected


def test_unset_names_are_told() -> None:
    assert substitute("${A}$B${C:-x}${EMPTY}", ENVIRONMENT).unset == ("A", "B")


def test_a_text_without_references_is_unchanged() -> None:
    assert not substitute("^a$ 5$", ENVIRONMENT).changed


@given(st.text(alphabet="$AB{}:-x ", max_size=30))
def test_escaping_is_the_inverse(text: str) -> None:
    assert substitute(escaped(text), {"A": "1", "B": "2"}).text == text
