"""The four forms of a prompt."""

from __future__ import annotations

from typing import Any

import pytest

from headway.errors import RequestError
from headway.wire.completions import CompletionBody
from headway.wire.parse import parse_body
from headway.wire.prompt_field import MAX_PROMPTS


@pytest.mark.parametrize(
    ("given", "prompts"),
    [
        ("a", ["a"]),
        ("", [""]),
        (["a", "b"], ["a", "b"]),
        ([1, 2], [[1, 2]]),
        ([[1], [2, 3]], [[1], [2, 3]]),
        ([[]], [[]]),
        ([""], [""]),
    ],
)
def test_forms(given: Any, prompts: list[Any]) -> None:
    assert parse_body(CompletionBody, {"prompt": given}).prompt == prompts


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"a": 1}, "prompt is of type dict"),
        (7, "prompt is of type int"),
        ([], "empty list"),
        ([1, "a"], "prompt[1] is of type str"),
        ([1, True], "prompt[1] is of type bool"),
        (["a", 1], "prompt[1] is of type int"),
        (["a", [1]], "prompt[1] is of type list"),
        ([[1], "a"], "prompt[1] is of type str"),
        ([[1, "b"]], "prompt[0][1] is of type str"),
        ([[1.5]], "prompt[0][0] is of type float"),
        ([None], "prompt[0] is of type NoneType"),
        (["a"] * (MAX_PROMPTS + 1), f"the limit is {MAX_PROMPTS}"),
    ],
)
def test_what_fits_no_form_is_named(given: Any, words: str) -> None:
    with pytest.raises(RequestError) as found:
        parse_body(CompletionBody, {"prompt": given})
    assert words in found.value.message
    assert found.value.param == "prompt"
