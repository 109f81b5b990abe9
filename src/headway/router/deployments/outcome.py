"""How an exchange with a model runtime ended, in the words of metrics, previews and policies: one table for each kind of failure."""

from __future__ import annotations

from collections.abc import Mapping

OK, TIMEOUT, CANCELLED, UNAVAILABLE, OVERLOADED, REJECTED, FAILED = "ok", "timeout", "cancelled", "unavailable", "overloaded", "rejected", "failed"
UNKNOWN_DEPLOYMENT = "unknown_deployment"
INVALID_OUTPUT = "invalid_model_output"
MISSING_ANSWER = "missing_answer"
INCOMPLETE_LABELS = "incomplete_label_judgments"
COVERAGE_UNKNOWN = "input_coverage_unknown"
INPUT_LIMIT, SCAN_BUDGET, DEADLINE = "input_limit", "scan_budget", "deadline"

REASONS = (
    TIMEOUT, CANCELLED, UNAVAILABLE, OVERLOADED, REJECTED, FAILED, UNKNOWN_DEPLOYMENT, INVALID_OUTPUT, MISSING_ANSWER, INCOMPLETE_LABELS,
    COVERAGE_UNKNOWN, INPUT_LIMIT, SCAN_BUDGET, DEADLINE,
)  # fmt: skip
"""Every reason for which there is no answer."""

_STATUSES: Mapping[int, str] = {200: OK, 408: TIMEOUT, 413: INPUT_LIMIT, 429: OVERLOADED, 503: UNAVAILABLE, 504: TIMEOUT}

_ITEM_CODES: Mapping[str, str] = {
    "invalid_question": REJECTED,
    "invalid_input": REJECTED,
    "max_length_exceeded": INPUT_LIMIT,
    "scan_budget_exceeded": SCAN_BUDGET,
    "invalid_model_output": INVALID_OUTPUT,
    "unavailable": UNAVAILABLE,
    "not_ready": UNAVAILABLE,
    "overloaded": OVERLOADED,
}

SICK = frozenset({UNAVAILABLE, FAILED})
"""Outcomes that say something about the runtime, not about the request or its caller."""


def of_status(status: int) -> str:
    """Of a whole answer."""
    found = _STATUSES.get(status)
    if found is not None:
        return found
    return REJECTED if 400 <= status < 500 else FAILED


def of_item(code: str, needs_all: bool = False) -> str:
    """Of one question or input inside an answer. A deadline that ended the reading of what must be read in full is content that was not read."""
    if code == "deadline_exceeded":
        return DEADLINE if needs_all else TIMEOUT
    return _ITEM_CODES.get(code, FAILED)
