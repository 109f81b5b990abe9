"""Replays: records of requests, and what people or programs say of their outcomes."""

from __future__ import annotations

import asyncio
from typing import Any

from headway.router.management.answer import Answer, ManagementError
from headway.router.management.call import Call
from headway.router.management.models import switched_off
from headway.router.management.route import Route
from headway.router.stores.replays.keeping import Replays
from headway.router.stores.replays.store import Filters

_CONTENT = ("request_body", "response_body", "tool_trace", "user")
_OUTCOME_FIELDS = ("target", "target_ref", "verdict", "reason", "score", "source", "metadata")
_LONGEST = 4096


async def replays(call: Call) -> Answer:
    limit, offset = call.number("limit", 20, 100), call.number("offset", 0, 10**9)
    found, total = await asyncio.to_thread(_store(call).find, _filters(call), limit, offset)
    return Answer({"object": "router_replay.list", "count": len(found), "total": total, "data": [_shown(call, record) for record in found]})


async def replay(call: Call) -> Answer:
    return Answer(_shown(call, await asyncio.to_thread(_store(call).get, call.parameters["id"])))


async def aggregate(call: Call) -> Answer:
    return Answer(await asyncio.to_thread(_store(call).aggregate, _filters(call)))


async def trajectory(call: Call) -> Answer:
    """The requests of one session, in order."""
    session = call.query.get("session_id")
    if not session:
        raise ManagementError("INVALID_INPUT", "session_id is needed")
    found = await asyncio.to_thread(_store(call).trajectory, session, call.number("limit", 100, 1000))
    return Answer({"session_id": session, "data": [_shown(call, record) for record in found]})


async def outcomes(call: Call) -> Answer:
    """One outcome of one request. The same Idempotency-Key and content gives the first answer again."""
    body = call.json()
    replay_id, verdict, target = body.get("replay_id"), body.get("verdict"), body.get("target")
    for name, value in (("replay_id", replay_id), ("target", target), ("verdict", verdict)):
        if not isinstance(value, str) or not value or len(value) > _LONGEST:
            raise ManagementError("INVALID_INPUT", f"{name} must be a string that is not empty")
    unknown = set(body) - {"replay_id", *_OUTCOME_FIELDS}
    if unknown:
        raise ManagementError("INVALID_INPUT", f"unknown fields: {', '.join(sorted(unknown))}", fix=f"It takes replay_id, {', '.join(_OUTCOME_FIELDS)}.")
    outcome = {name: body[name] for name in _OUTCOME_FIELDS if name in body}
    if len(str(outcome)) > 4 * _LONGEST:
        raise ManagementError("INVALID_INPUT", f"an outcome may have {4 * _LONGEST} characters")
    key = call.headers.get("idempotency-key")
    made, new = await asyncio.to_thread(_store(call).add_outcome, str(replay_id), outcome, key)
    return Answer(made, 201 if new else 200)


def _store(call: Call) -> Replays:
    found = call.state.services.replays.current
    if found is None:
        raise switched_off("router replay", "Set global.services.router_replay.enabled, or give a decision the plugin router_replay.")
    return found


def _filters(call: Call) -> Filters:
    said = call.query
    return Filters(said.get("recipe"), said.get("decision"), said.get("model"), said.get("session_id"), said.get("cache_status"), said.get("search"))


def _shown(call: Call, record: dict[str, Any]) -> dict[str, Any]:
    """Content only for those who may see details."""
    if not call.state.access.enabled or call.may("replay.detail"):
        return record
    shown = {name: value for name, value in record.items() if name not in _CONTENT}
    if "outcomes" in shown:
        shown["outcomes"] = [{name: value for name, value in each.items() if name not in ("target_ref", "reason", "metadata")} for each in shown["outcomes"]]
    return shown


_ROOT = "/api/v1/observability"
ROUTES = (
    Route("GET", f"{_ROOT}/replays", replays, "replay.read", "Records of requests, the newest first.", ("/v1/router_replay",)),
    Route("GET", f"{_ROOT}/replays/aggregate", aggregate, "replay.read", "Counts over records."),
    Route("GET", f"{_ROOT}/replays/trajectory", trajectory, "replay.read", "The records of one session."),
    Route("GET", f"{_ROOT}/replays/{{id}}", replay, "replay.read", "One record with its outcomes.", ("/v1/router_replay/{id}",)),
    Route("POST", f"{_ROOT}/outcomes", outcomes, "learning.ingest", "Say what came of a request.", ("/v1/router/outcomes",)),
)
