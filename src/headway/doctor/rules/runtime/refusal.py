"""Rules of one shape: a phrase that the runtime prints for a model it does not load, documented by the phrase itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.sight import Sight
from headway.doctor.finding import Found
from headway.doctor.rules.rule import Rule
from headway.doctor.rules.runtime.deployments import SIGHTS as DEPLOYMENTS
from headway.doctor.rules.runtime.statement import READY, RETRYING
from headway.doctor.words import Words

CONSEQUENCES: Final = ("R11", "R13", "R24", "R27", "R32", "L18", "N1")
"""What a model that does not load brings with it."""


def refusal(
    id_: str, title: Words, phrase: Sight, why: Words, needs: Words, remedy: Words, check: Words, judge: Callable[[Case], Found | None], *also: Sight
) -> Rule:
    """The rule whose symptom is `phrase`; `also`: other sights that `judge` reads."""
    symptom = f"`{phrase.anchors[0]}`"
    return Rule(
        id=id_,
        title=title,
        symptoms=Words(symptom, symptom),
        why=why,
        needs=needs,
        remedy=remedy,
        check=check,
        judge=judge,
        sees=(phrase, *also, *DEPLOYMENTS, READY, RETRYING),
    )
