"""`POST /v1/systemone` and `/v1/decisions`, `GET /v1/systemone/models` on a public listener."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from headway.errors import HeadwayError
from headway.router.deployments import outcome
from headway.router.deployments.card import Card
from headway.router.deployments.pool import CallFailed
from headway.router.deployments.runtime_client import Exchange
from headway.router.listener.admission import model_allowed
from headway.router.listener.answer_headers import SCHEMA, safe_headers
from headway.router.listener.limiting import let_in
from headway.router.listener.request import PublicRequest
from headway.router.listener.request_body import parsed, read_body
from headway.router.listener.respond import send_json, send_object
from headway.router.native.grants import Grants
from headway.router.native.raw_model import with_model

MOST_BODY_BYTES: Final = 48 * 1024 * 1024
MOST_ANSWER_BYTES: Final = 4 * 1024 * 1024
_PASSED_HEADERS: Final = ("server-timing", "retry-after")

_FAILURES: Mapping[str, tuple[str, str]] = {
    outcome.TIMEOUT: ("deadline_exceeded", "the model did not answer in time"),
    outcome.UNAVAILABLE: ("runtime_unavailable", "the model is not ready or cannot be reached"),
    outcome.OVERLOADED: ("runtime_overloaded", "the model has more requests than it can take"),
}
"""Outcome of a call -> reason and sentence of its error."""


class NativeCallError(HeadwayError):
    """A System One call that no worker answered."""

    reason = "runtime_failed"


async def handle_native(request: PublicRequest) -> None:
    """Pass the body on and the answer back. Raises HeadwayError."""
    grants = _granted(request)
    limits = replace(request.front.limits, max_bytes=min(request.front.limits.max_bytes, MOST_BODY_BYTES))
    raw = await read_body(request, limits)
    body = parsed(raw, limits)
    public, deployment = grants.deployment(body.get("model"))
    admitted = await let_in(request, public)
    exchange = await _exchange(request, deployment, raw, _seconds(request, body, grants))
    answer = with_model(exchange.body, public) if exchange.status == 200 else exchange.body
    passed = [(name.encode(), exchange.headers[name].encode("latin-1", "replace")) for name in _PASSED_HEADERS if name in exchange.headers]
    identity = request.caller.request_id.encode("latin-1", "replace")
    ours = [SCHEMA, (b"x-vsr-response-path", b"upstream"), (b"x-request-id", identity), (b"x-typesafe-request-id", identity)]
    await send_json(request.send, exchange.status, answer, [*ours, *passed, *safe_headers(admitted.headers)])


async def send_native_models(request: PublicRequest) -> None:
    """What the listener grants, as System One clients and OpenAI's read it; models that are not ready are there too."""
    data = [
        {
            "id": public, "object": "model", "created": _created(card), "owned_by": "vllm-semantic-router", "ready": card is not None,
            "surfaces": sorted(card.surfaces) if card else [], "question_types": sorted(card.question_types) if card else [],
        }
        for public, card in _listed(request)
    ]  # fmt: skip
    await send_object(request.send, {"object": "list", "models": native_models(request), "data": data})


def native_models(request: PublicRequest) -> list[dict[str, str]]:
    """As System One clients read models."""
    return [
        {"name": public, "description": _description(card), "release_date": datetime.date.fromtimestamp(_created(card)).isoformat()}
        for public, card in _listed(request)
    ]


def _listed(request: PublicRequest) -> list[tuple[str, Card | None]]:
    deployments = request.generation.deployments
    return [(public, deployments.card(name)) for public, name in _granted(request).models.items()]


def _granted(request: PublicRequest) -> Grants:
    """Those of the listener that the key may use."""
    grants = request.generation.deployments.grants(request.rules.name)
    key = request.caller.key
    if key is None or key.models is None:
        return grants
    rules = replace(request.rules, models=None)  # the listener's list is of chat models
    return replace(grants, models={name: deployment for name, deployment in grants.models.items() if model_allowed(name, rules, key)})


def _seconds(request: PublicRequest, body: Mapping[str, Any], grants: Grants) -> float:
    """How long the call may take: the least of what the client, the listener's grant and its timeout allow."""
    options = body.get("options")
    asked = options.get("deadline_ms") if isinstance(options, Mapping) else None
    bounds = [request.rules.idle_seconds]
    if isinstance(asked, int | float) and not isinstance(asked, bool) and asked > 0:
        bounds.append(asked / 1000)
    if request.caller.deadline_ms is not None:
        bounds.append(request.caller.deadline_ms / 1000)
    if grants.longest is not None:
        bounds.append(grants.longest)
    return min(bounds)


async def _exchange(request: PublicRequest, deployment: str, raw: bytes, seconds: float) -> Exchange:
    try:
        return await request.generation.deployments.pass_on(
            deployment, request.path, lambda served: with_model(raw, served), seconds, MOST_ANSWER_BYTES
        )
    except CallFailed as failed:
        reason, sentence = _FAILURES.get(failed.outcome, ("runtime_failed", "the model runtime failed"))
        raise NativeCallError(sentence, reason=reason) from None


def _created(card: Card | None) -> int:
    value = card.raw.get("created") if card else None
    return value if isinstance(value, int) and 0 <= value < 1 << 40 else 0


def _description(card: Card | None) -> str:
    return "not ready" if card is None else f"{card.raw.get('family', 'unknown')} model for {', '.join(sorted(card.surfaces))}"
