"""How errors look on the routes of decisions: in the form of System One, of the worker, and of OpenAI.

System One clients read `detail`, those of the worker `error.code`, those of OpenAI `error.type` and `error.param`. One body
carries what its form needs and never contradicts itself.
"""

from __future__ import annotations

from typing import Final

from headway.errors import HeadwayError
from headway.runtime.http.call import Fields, Refuse
from headway.runtime.http.refusal import Refusal, code_of, headers_of, message_of, worker_refusal
from headway.wire.decision_body import is_runtime
from headway.wire.decision_errors import (
    TOO_LONG,
    TOO_LONG_STATUS,
    VALIDATION_STATUS,
    detail_of,
    openai_type,
    violations_of,
)
from headway.wire.openai_decisions import is_openai

_TOO_LARGE: Final = "request_too_large"  # the worker's code for a prompt over the limit


def system_one_refusal(error: BaseException) -> Refusal:
    """422 with `detail[]` for a body that breaks the protocol, `detail.error_type` and `detail.message` for the rest."""
    plain = detailed_refusal(error)
    return Refusal(VALIDATION_STATUS, plain.body, plain.headers) if violations_of(error, message_of(error)) else plain


def detailed_refusal(error: BaseException) -> Refusal:
    """The worker's own form with its own status, and `detail` beside it."""
    plain = worker_refusal(error)
    message = message_of(error)
    if isinstance(error, HeadwayError) and error.reason == TOO_LONG:
        plain = Refusal(TOO_LONG_STATUS, {"error": {"code": _TOO_LARGE, "message": message}}, plain.headers)
    detail = detail_of(violations_of(error, message), plain.status, message)
    return Refusal(plain.status, {**plain.body, "detail": detail}, plain.headers)


def openai_refusal(error: BaseException) -> Refusal:
    """`{"error": {"message", "type", "param", "code"}}`."""
    status, code = code_of(error)
    param = error.param if isinstance(error, HeadwayError) else None
    return Refusal(status, {"error": {"message": message_of(error), "type": openai_type(status), "param": param, "code": code}}, headers_of(error))


def system_one_style(fields: Fields | None) -> Refuse:
    """For `/v1/systemone`."""
    return detailed_refusal if fields is not None and is_runtime(fields) else system_one_refusal


def batch_style(fields: Fields | None) -> Refuse:
    """For `/v1/systemone/batch`, whose `states` are an array."""
    return system_one_style(None if fields is None else {"questions": fields.get("questions")})


def decisions_style(fields: Fields | None) -> Refuse:
    """For `/v1/decisions`, where the body tells who speaks; a body that cannot be read gets what all of them understand."""
    if fields is None:
        return _anybodys_refusal
    return openai_refusal if is_openai(fields) else system_one_style(fields)


def _anybodys_refusal(error: BaseException) -> Refusal:
    refusal, detail = openai_refusal(error), detailed_refusal(error).body["detail"]
    return Refusal(refusal.status, {**refusal.body, "detail": detail}, refusal.headers)
