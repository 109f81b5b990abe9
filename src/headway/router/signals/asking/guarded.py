"""What a guard makes of content that nobody judged: it fails closed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headway.router.config.document.model_signals import UnknownPolicy
from headway.router.config.document.modules import Policy
from headway.router.deployments.calls import Answered, Unanswered
from headway.router.observation import UNSCANNED, Observation
from headway.router.signals.asking.reasons import code_of
from headway.router.truth import Truth

UNANSWERED = "unanswered"


@dataclass(frozen=True, slots=True)
class GuardPolicy:
    """`unanswered_matches`: no answer counts as a match; `unscanned_matches`: content that was not read does."""

    unanswered_matches: bool = True
    unscanned_matches: bool = True

    @classmethod
    def of(cls, rule: UnknownPolicy | None, on_error: Policy | None, on_unscanned: Policy | None) -> GuardPolicy:
        """The rule's own `on_unknown` comes before the `on_error` of its module."""
        unanswered = rule != "no_match" if rule is not None else on_error != "allow"
        return cls(unanswered, on_unscanned != "allow")


def unread(answers: Sequence[Answered[Any] | Unanswered]) -> str | None:
    """Why content was not read, when some was not: input_limit, scan_budget, deadline."""
    for answer in answers:
        if isinstance(answer, Unanswered):
            if answer.unread:
                return answer.reason
        elif not answer.read_all:
            return "input_limit"
    return None


def unanswered(answers: Sequence[Answered[Any] | Unanswered]) -> Unanswered | None:
    """The first answer that did not come, for another reason than its length."""
    return next((answer for answer in answers if isinstance(answer, Unanswered) and not answer.unread), None)


def unjudged(kind: str, name: str, asked: str, answers: Sequence[Answered[Any] | Unanswered], policy: GuardPolicy) -> Observation | None:
    """What a rule counts as that found nothing in what was answered; None when everything was read and answered, and it does not match.

    A match is of the type `unscanned` or `unanswered`, and ranks nothing.
    """
    found: Observation | None = None
    missing, failure = unread(answers), unanswered(answers)
    if missing is not None:
        found = _counted(kind, name, UNSCANNED, f"{UNSCANNED}_{missing}", policy.unscanned_matches)
    if failure is not None and (found is None or found.truth is Truth.FALSE):
        found = _counted(kind, name, UNANSWERED, code_of(asked, failure.reason), policy.unanswered_matches)
    return found


def _counted(kind: str, name: str, type: str, reason: str, matches: bool) -> Observation:
    return Observation(kind, name, Truth.of(matches), matched_labels=(type,) if matches else (), reason=reason, evidence={"type": type})


def fails_closed(kind: str, name: str, on_unknown: UnknownPolicy | None, reason: str) -> Sequence[Observation]:
    """For a guard whose signal itself failed or overran."""
    return (_counted(kind, name, UNANSWERED, reason, on_unknown != "no_match"),)
