"""The rules of loading: from a name to a model that stands in memory."""

from __future__ import annotations

from typing import Final

from headway.doctor.rules.loading import access, model_name
from headway.doctor.rules.rule import Rule

RULES: Final[tuple[Rule, ...]] = (*model_name.RULES, *access.RULES)
