"""Whether a preview of a request is what a case expects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headway.router.policy.document import Case, Expectation
from headway.router.signals.table import KIND_OF_TYPE

_PROJECTIONS = "projections"
_STATES = {"matched": "matched_signals", "unmatched": "unmatched_signals", "unknown": "unknown_signals"}


@dataclass(frozen=True, slots=True)
class Verdict:
    """`failures` has a sentence for each expectation that was not met. `decision` "" means that no decision won."""

    name: str
    failures: tuple[str, ...]
    decision: str
    model: str
    error: str
    matched: tuple[str, ...]
    signal_errors: Mapping[str, str]

    @property
    def passed(self) -> bool:
        return not self.failures

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "passed": self.passed,
            "failures": list(self.failures),
            "decision": self.decision,
            "model": self.model,
            "error": self.error,
            "matched": list(self.matched),
            "signal_errors": dict(self.signal_errors),
        }


def judge(case: Case, number: int, report: Mapping[str, Any]) -> Verdict:
    """`report` is a preview's; `error` in it is the reason for which routing failed."""
    decision = report.get("decision_result") or {}
    error = str(report.get("error") or "")
    return Verdict(
        case.title(number),
        tuple(_failures(case.expect, report, decision, error)),
        str(decision.get("decision_name") or ""),
        str(report.get("selected_model") or ""),
        error,
        tuple(_keys(decision.get("matched_signals") or {})),
        dict(report.get("signal_errors") or {}),
    )


def _failures(expect: Expectation, report: Mapping[str, Any], decision: Mapping[str, Any], error: str) -> Iterator[str]:
    if (expect.error or "") != error:
        yield f"expected {f'error {expect.error}' if expect.error else 'no error'}, found {error or 'none'}"
        if error:
            return
    for what, wanted, found in (
        ("decision", expect.decision, decision.get("decision_name")),
        ("recipe", expect.recipe, report.get("recipe")),
        ("model", expect.model, report.get("selected_model")),
        ("algorithm", expect.algorithm, decision.get("algorithm")),
        ("status", expect.status, report.get("selection_status")),
    ):
        if wanted is not None and wanted != (found or ""):
            yield f"expected {what} {wanted or '(none)'}, found {found or '(none)'}"
    for state, field in _STATES.items():
        wanted_keys: Sequence[str] = getattr(expect, state) or ()
        missing = [key for key in wanted_keys if key not in set(_keys(decision.get(field) or {}))]
        for key in missing:
            yield f"expected {key} {state}, found {_state(key, decision)}"


def _state(key: str, decision: Mapping[str, Any]) -> str:
    return next((state for state, field in _STATES.items() if key in set(_keys(decision.get(field) or {}))), "not evaluated")


_TYPE_OF_KEY = {kind.observation_key: kind.type for kind in KIND_OF_TYPE.values()} | {_PROJECTIONS: "projection"}


def _keys(grouped: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """`type:name` of what a preview groups by observation key."""
    for key, names in grouped.items():
        for name in names:
            yield f"{_TYPE_OF_KEY.get(key, key)}:{name}"
