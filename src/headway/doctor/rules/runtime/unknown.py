"""Signals without an answer, from the router's log, a preview, and its counters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.masking import mask
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import Quote
from headway.doctor.rules.runtime.readings import PRINTED, growth, last

SIGNAL: Final = sight(
    "signal unknown",
    "signal_unknown",
    "signal unanswered",
    "signal not answered",
    "signal failed",
    pattern=r"signal[ _](?:unknown|unanswered|not answered|failed)\b",
    series=True,
)
PREVIEW: Final = sight(
    "decision_timeout",
    "signal_errors",
    '_unavailable"',
    '_overloaded"',
    pattern=r"\"(?P<signal>[\w:.\-]+)\": ?\"(?P<code>(?:\w+_)?(?P<reason>timeout|unavailable|overloaded))\"",
)
WORKER_FULL: Final = sight(" 429", pattern=r"POST /v1/(?:classif\w+|decisions|embeddings|rerank|grounded\w*)\S* HTTP/\d\.\d\"? 429", series=True)
BLOCKED: Final = sight('"status": 403', '"status":403', "status=403", pattern=r"status=403\b", series=True)
RULE_MATCHED: Final = sight("rule matched", pattern=r"rule matched\b", series=True)
SIGHTS: Final = (SIGNAL, PREVIEW, RULE_MATCHED, BLOCKED, PRINTED)
_FIELD: Final = re.compile(r"\b(\w+)=([^,\s]+)")


@dataclass(frozen=True, slots=True)
class Unknown:
    """Answers that did not come for one reason. `count`: as many as are known of; `first`: the fields of the first line."""

    reason: str
    deployment: str
    signal: str
    count: int
    first: Mapping[str, Any]
    quotes: tuple[Quote, ...]
    line: int | None

    def number(self, name: str) -> float | None:
        value = self.first.get(name)
        try:
            return float(value) if value is not None and not isinstance(value, bool) else None
        except (TypeError, ValueError):
            return None


def fields_of(hit: Hit) -> Mapping[str, Any]:
    """Members of a JSON line, else `name=value` pairs of its text; masked."""
    members = hit.line.fields or dict(_FIELD.findall(hit.line.text))
    return {name: mask(value) if isinstance(value, str) else value for name, value in members.items()}


def reasons_of(fields: Mapping[str, Any]) -> set[str]:
    """Why there is no answer, as `reason` or as a code: `decision_timeout` and `domain_timeout` are `timeout`."""
    told = {str(fields[name]) for name in ("reason", "code", "upstream_code") if name in fields}
    return told | {short for text in told for short in ("timeout", "unavailable", "overloaded") if text.endswith(f"_{short}")}


def unknown_answers(case: Case, *reasons: str) -> Unknown | None:
    """Those of these reasons, None when there are none."""
    hits = [hit for hit in case.log.hits(SIGNAL) if not reasons_of(fields_of(hit)).isdisjoint(reasons)]
    previews = [hit for hit in case.log.hits(PREVIEW) if hit["reason"] in reasons]
    counted = next((each for reason in reasons if (each := growth(case, "vsr_model_runtime_unknown_answers_total", reason=reason)) and each.value > 0), None)
    if not hits and not previews and counted is None:
        return None
    first = fields_of(hits[0]) if hits else {}
    lines = hits or previews
    deployment = str(first.get("deployment", "")) or (counted.labels.get("deployment", "") if counted else "")
    signal = str(first.get("signal", "")) or (previews[0]["signal"] if previews else "")
    count = max(len(hits) + len(previews), int(counted.value) if counted else 0)
    quotes = [hit.quote() for hit in lines[:2]] + ([counted.quote] if counted else [])
    return Unknown(reasons[0], deployment, signal, count, first, tuple(quotes), lines[0].line.number if lines else None)


def is_ready(case: Case, deployment: str) -> bool | None:
    """What the router's gauge says, None when it is not known."""
    gauge = last(case, "vsr_model_runtime_ready", deployment=deployment)
    return None if gauge is None else gauge.value > 0
