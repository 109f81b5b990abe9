"""The words of `retry_on`, as Envoy has them."""

from __future__ import annotations

from collections.abc import Mapping

RETRIED_STATUSES: Mapping[str, frozenset[int]] = {
    "5xx": frozenset(range(500, 600)),
    "gateway-error": frozenset({502, 503, 504}),
    "retriable-4xx": frozenset({409}),
    "retriable-status-codes": frozenset(),  # those that are listed beside it
}
FAILED_CONNECTIONS = frozenset({"connect-failure", "refused-stream", "reset", "reset-before-request", "5xx"})
"""Words that mean a connection that failed, or closed before the answer began."""

WORDS = frozenset(RETRIED_STATUSES) | FAILED_CONNECTIONS


def retry_words(retry_on: str | None) -> frozenset[str]:
    """The words of a comma-separated `retry_on`."""
    return frozenset(filter(None, (word.strip() for word in (retry_on or "").split(","))))


def known_words(retry_on: str) -> str:
    """`retry_on`. Raises ValueError for a word that is none."""
    unknown = sorted(retry_words(retry_on) - WORDS)
    if unknown:
        raise ValueError(f'"{unknown[0]}" is no condition for retries, expected some of {", ".join(sorted(WORDS))}')
    return retry_on
