"""How much of a state may be read: the scan budget, and the view of questions that take the beginning alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from headway.errors import ConfigError
from headway.runtime.readers.vela2.parts import PartTokens
from headway.runtime.readers.vela2.questions import VelaQuestion
from headway.runtime.readers.vela2.state import Role
from headway.runtime.row import ItemFailure

OPTION: Final = "max_scan_tokens"
_INPUTS_ON_CPU: Final = 4
_INPUTS_ELSEWHERE: Final = 32


def default_budget(max_tokens: int, device: str, options: Mapping[str, Any]) -> int:
    """Tokens of one part: some inputs full, unless the models file says otherwise; never less than one input.

    Raises ConfigError (`invalid_config`).
    """
    given = options.get(OPTION)
    if given is None:
        return max_tokens * (_INPUTS_ON_CPU if device.startswith("cpu") else _INPUTS_ELSEWHERE)
    if type(given) is not int or given < 1:
        raise ConfigError(f"options.{OPTION} must be a positive integer, found {given!r:.40}", param=OPTION)
    return max(given, max_tokens)


def over_budget(question: VelaQuestion, parts: Mapping[Role, PartTokens], budget: int) -> ItemFailure | None:
    """A part that would need more windows than the budget has is not read at all."""
    if question.truncate:
        return None
    longest = max((parts[role] for role in question.roles), key=lambda part: len(part.ids))
    if len(longest.ids) <= budget:
        return None
    return ItemFailure("scan_budget_exceeded", f"the {longest.role} part has at least {len(longest.ids)} tokens, the scan budget is {budget}; nothing was read")
