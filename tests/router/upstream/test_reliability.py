"""Settings of reliability, and what a decision says over its model's."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from headway.router.config.document.decisions import DecisionReliability
from headway.router.config.document.providers import ProviderReliability
from headway.router.upstream.exchange import TryError
from headway.router.upstream.reliability import RETRIED_STATUSES, Reliability, reliability_of
from headway.router.upstream.retrying import repeats, retry_after


def of(**settings: Any) -> Reliability:
    return reliability_of(ProviderReliability.model_validate(settings))


def test_nothing_said_is_the_default_and_0_means_without_limit() -> None:
    assert of() == reliability_of(None) == Reliability()
    found = of(idle_timeout="0s", total_timeout="1m30s", per_try_timeout="250ms")
    assert (found.idle, found.total, found.per_try, found.first_byte) == (None, 90.0, 0.25, 300.0)


@pytest.mark.parametrize(
    ("settings", "statuses", "on_connect"),
    [
        ({}, RETRIED_STATUSES, True),
        ({"retry_on": "connect-failure, refused-stream"}, frozenset(), True),
        ({"retry_on": "gateway-error"}, {502, 503, 504}, False),
        ({"retry_on": "retriable-status-codes", "retriable_status_codes": [418]}, {418}, False),
        ({"retriable_status_codes": [500]}, {500}, True),
    ],
)
def test_conditions(settings: dict[str, Any], statuses: set[int], on_connect: bool) -> None:
    found = of(**settings)
    assert (found.statuses, found.on_connect) == (statuses, on_connect)


def test_a_decision_replaces_times_and_adds_conditions() -> None:
    base = of(retry_on="gateway-error", first_byte_timeout="10s", retry_count=1)
    mine = DecisionReliability.model_validate({"retriable_status_codes": [418], "first_byte_timeout": "0s", "retry_count": 2})
    found = reliability_of(mine, base)
    assert (found.statuses, found.on_connect, found.first_byte, found.retries) == ({418, 502, 503, 504}, False, None, 2)


def test_a_condition_that_is_none_is_refused() -> None:
    for model in (ProviderReliability, DecisionReliability):
        with pytest.raises(ValidationError, match=r"gateway-errors.*is no condition"):
            model.model_validate({"retry_on": "connect-failure,gateway-errors"})


@pytest.mark.parametrize(
    ("failure", "plain", "counted", "without_connect"),
    [
        (TryError("connect_failed"), True, True, False),
        (TryError("connect_timeout"), True, True, False),
        (TryError("closed"), True, True, False),
        (TryError("first_byte_timeout"), False, False, False),
        (TryError("bad_answer"), False, False, False),
        (503, False, True, True),
        (500, False, False, False),
        (429, False, True, False),
    ],
)
def test_what_is_repeated(failure: TryError | int, plain: bool, counted: bool, without_connect: bool) -> None:
    assert repeats(of(), failure, 0, untried=True) is plain
    assert repeats(of(retry_count=1), failure, 0, untried=True) is counted
    assert repeats(of(retry_count=1), failure, 1, untried=True) is False
    assert repeats(of(retry_count=1, retry_on="gateway-error"), failure, 0, untried=True) is without_connect


@pytest.mark.parametrize(
    ("text", "seconds"), [("3", 3.0), ("0.5", 0.5), ("-1", 0.0), ("soon", None), ("", None), ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0), ("nan", None), ("inf", None)]
)
def test_retry_after(text: str, seconds: float | None) -> None:
    assert retry_after({"retry-after": text}) == seconds
