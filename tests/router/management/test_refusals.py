"""Errors of the management address: status and code by reason."""

from __future__ import annotations

import pytest

from headway.errors import ContextLengthError, HeadwayError
from headway.router.management.answer import refusal
from headway.wire.errors import SHAPES


@pytest.mark.parametrize("reason", sorted(SHAPES))
def test_what_a_client_is_told_a_preview_is_told(reason: str) -> None:
    """Naming a model that is not there is the one thing that the two addresses call differently: 404 is for paths of the management address."""
    answer = refusal(HeadwayError("what", reason=reason))
    assert answer.status == (400 if reason == "model_not_found" else SHAPES[reason].status)
    assert answer.body["error"]["code"].isupper()


def test_a_request_that_fits_no_candidate_is_no_defect() -> None:
    answer = refusal(ContextLengthError("about 900 tokens"))
    assert (answer.status, answer.body["error"]["code"], answer.body["error"]["message"]) == (400, "CONTEXT_LENGTH_EXCEEDED", "about 900 tokens")


def test_a_reason_that_nobody_knows_is_a_defect() -> None:
    answer = refusal(HeadwayError("in /a/b/c.py", reason="never_heard_of"))
    assert (answer.status, answer.body["error"]["code"], answer.body["error"]["message"]) == (500, "INTERNAL_ERROR", "in c.py")
