"""Evidence to report: judge every rule, drop consequences, put the first cause first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from headway.doctor.case import Case
from headway.doctor.finding import ANSWER_ABOVE, Abstention, Found, Quote
from headway.doctor.rules.rule import Rule
from headway.doctor.verdict import umbrella_only, verdict_of
from headway.doctor.words import Words

_WEIGHTS: Final = {"fatal": 0, "degraded": 1, "remark": 2}


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule with what it found."""

    rule: Rule
    found: Found

    @property
    def is_answer(self) -> bool:
        return self.found.confidence > ANSWER_ABOVE

    @property
    def title(self) -> Words:
        return self.found.title or self.rule.title


@dataclass(frozen=True, slots=True)
class Report:
    verdict: Words
    findings: tuple[Finding, ...]
    abstained: tuple[Words, ...]


def diagnose(case: Case, rules: Iterable[Rule]) -> Report:
    """The same case gives the same report."""
    found: list[Finding] = []
    abstained: list[Words] = []
    for rule in rules:
        answer = rule.judge(case)
        if isinstance(answer, Abstention):
            abstained.append(answer.missing.masked())
        elif answer is not None:
            found.append(Finding(rule, without_secrets(answer)))
    findings = sorted(_causes(found), key=_order)
    if not any(finding.is_answer for finding in findings) and (missing := umbrella_only(case)):
        abstained.append(missing)
    top = findings[0] if findings else None
    return Report(verdict_of(case, top.title if top else None, top.found if top else None, abstained), tuple(findings), tuple(abstained))


def _causes(found: list[Finding]) -> list[Finding]:
    """Without what another answer explains."""
    explained = {rule_id for finding in found if finding.is_answer for rule_id in (*finding.rule.explains, *finding.found.explains)}
    return [finding for finding in found if finding.rule.id not in explained]


def _order(finding: Finding) -> tuple[bool, int, float, float, str]:
    """Answers first; what stops the thing before what slows it; then the surer, then the earlier in the log."""
    found = finding.found
    return not finding.is_answer, _WEIGHTS[found.weight], -round(found.confidence, 1), _first_line(found), finding.rule.id


def _first_line(found: Found) -> float:
    if found.at is not None:
        return found.at
    return min((quote.line for quote in _quotes(found) if quote.line is not None), default=float("inf"))


def _quotes(found: Found) -> Iterable[Quote]:
    return found.evidence
