"""Evidence to report: judge every rule, drop consequences, put the first cause first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.masking import mask
from headway.doctor.finding import ANSWER_ABOVE, Abstention, Fix, Found
from headway.doctor.missing import what_is_missing
from headway.doctor.rules.rule import Rule
from headway.doctor.verdict import verdict_of
from headway.doctor.words import Words

_WEIGHTS: Final = {"fatal": 0, "degraded": 1, "remark": 2}
# what values of an unexpected type or size lead to
_ODD: Final = (TypeError, ValueError, KeyError, AttributeError, IndexError, ArithmeticError)
_SURE: Final = 0.8  # causes at least this sure are ordered by time, not by how sure they are


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
    abstained: dict[Words, None] = {}
    for rule in rules:
        answer = _answer(rule, case)
        if isinstance(answer, Abstention):
            abstained[_safe(answer.missing)] = None
        elif answer is not None:
            found.append(Finding(rule, _without_secrets(answer)))
    findings = sorted(_causes(found), key=lambda finding: _order(case, finding))
    if not any(finding.is_answer for finding in findings) and (missing := what_is_missing(case)):
        abstained[_safe(missing)] = None
    top = findings[0] if findings else None
    verdict = verdict_of(case, top.title if top else None, top.found if top else None, list(abstained))
    return Report(verdict, tuple(findings), tuple(abstained))


def _answer(rule: Rule, case: Case) -> Found | Abstention | None:
    """A context is written by hand, and one odd member of it must not cost the answers of all other rules."""
    try:
        return rule.judge(case)
    except _ODD as error:
        kind = type(error).__name__
        return Abstention(
            Words(
                f"rule {rule.id} could not read this case ({kind}): a member of the context or a number in the log has a form that it does not expect",
                f"规则 {rule.id} 无法读取该案例（{kind}）：上下文中的某个成员或日志中的某个数字形式异常",
            )
        )


def _causes(found: Sequence[Finding]) -> list[Finding]:
    """Without what another answer explains. Of findings that explain each other the surer one stays."""
    explains = {finding.rule.id: {*finding.rule.explains, *finding.found.explains} for finding in found if finding.is_answer}
    surer = sorted((finding for finding in found if finding.is_answer), key=lambda finding: (-finding.found.confidence, finding.rule.id))
    rank = {finding.rule.id: place for place, finding in enumerate(surer)}

    def is_consequence(rule_id: str) -> bool:
        causes = [other for other in explains if other != rule_id and rule_id in _reached(explains, other)]
        return any(other not in _reached(explains, rule_id) or rank[other] < rank[rule_id] for other in causes)

    return [finding for finding in found if not is_consequence(finding.rule.id)]


def _reached(explains: Mapping[str, set[str]], start: str) -> set[str]:
    """What a cause explains, directly or through its consequences."""
    reached: set[str] = set()
    ahead = [start]
    while ahead:
        for rule_id in explains.get(ahead.pop(), ()):
            if rule_id not in reached:
                reached.add(rule_id)
                ahead.append(rule_id)
    return reached


def _order(case: Case, finding: Finding) -> tuple[object, ...]:
    """Answers first; what stops the thing before what slows it; then the earlier in the log, where both are sure."""
    found = finding.found
    sure = found.confidence >= _SURE
    return (
        not finding.is_answer,
        _WEIGHTS[found.weight],
        not sure,
        _first_line(case, found) if sure else (0, 0.0),
        -found.confidence,
        finding.rule.id,
    )


def _first_line(case: Case, found: Found) -> tuple[int, float]:
    """(file, line) of the earliest evidence; a cause that only the context shows comes after those that the log shows."""
    files = {source: index for index, source in enumerate(case.log.sources)}
    if found.at is not None:
        return 0, found.at
    lines = [(files.get(quote.source, 0), float(quote.line)) for quote in found.evidence if quote.line is not None]
    return min(lines, default=(len(files), float("inf")))


def _without_secrets(found: Found) -> Found:
    """Rules write with pieces of lines; whatever slipped through is masked here, before any report."""
    return replace(
        found,
        cause=_safe(found.cause),
        evidence=list(dict.fromkeys(replace(quote, text=mask(quote.text)) for quote in found.evidence if quote.text.strip())),
        fixes=[Fix(_safe(fix.text), None if fix.command is None else mask(fix.command)) for fix in found.fixes],
        verify=_safe(found.verify),
        title=None if found.title is None else _safe(found.title),
    )


def _safe(words: Words) -> Words:
    return Words(mask(words.en), mask(words.zh))
