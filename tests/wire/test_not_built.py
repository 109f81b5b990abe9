"""Fields without a feature are refused by name, and only when they ask for something."""

from __future__ import annotations

from typing import Any

import pytest

from headway.errors import NotBuiltError
from headway.wire.not_built import CHAT, COMPLETION, NotBuiltField, refuse_not_built


@pytest.mark.parametrize(
    ("table", "fields", "param"),
    [
        (COMPLETION, {"suffix": "x"}, "suffix"),
        (COMPLETION, {"prompt_embeds": "AAAA"}, "prompt_embeds"),
        (COMPLETION, {"best_of": 3, "n": 2}, "best_of"),
        (CHAT, {"functions": [{}]}, "functions"),
        (CHAT, {"function_call": "auto"}, "function_call"),
        (CHAT, {"modalities": ["text", "audio"]}, "modalities"),
    ],
)
def test_refused(table: tuple[NotBuiltField, ...], fields: dict[str, Any], param: str) -> None:
    with pytest.raises(NotBuiltError, match=f"{param} is not built yet") as found:
        refuse_not_built(table, fields)
    assert (found.value.param, found.value.reason) == (param, "not_built")


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"response_format": {"type": "text"}, "tools": [], "suffix": None},
        {"best_of": 1},
        {"best_of": 2, "n": 2},
        {"modalities": ["text"], "function_call": "none"},
    ],
)
def test_asking_for_nothing_is_fine(fields: dict[str, Any]) -> None:
    refuse_not_built(CHAT, fields)
