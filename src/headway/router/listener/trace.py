"""What a caller that may debug gets to see: `x-vsr-trace`, one JSON object, and a header per kind of signal that matched."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from headway.router.listener.answer_headers import RawHeaders, header_value
from headway.router.observation import Observation
from headway.router.request.context import RequestContext
from headway.router.signals.conversation import in_tool_loop
from headway.router.signals.table import SIGNAL_KINDS
from headway.router.truth import Truth

MOST_BYTES = 6 * 1024
_MOST_NAMES = 64
_HEADERS: Mapping[str, bytes] = {kind.type: kind.header.encode() for kind in SIGNAL_KINDS}


def debug_headers(context: RequestContext) -> RawHeaders:
    """Only for callers that `global.router.headers.debug` allows. Evidence may hold words of the caller's own text."""
    found: RawHeaders = [(b"x-vsr-trace", trace(context).encode("ascii"))]
    matched: dict[bytes, list[str]] = {}
    for observation in context.observations:
        header = _HEADERS.get(observation.kind)
        if header is not None and observation.truth is Truth.TRUE:
            matched.setdefault(header, []).append(observation.name)
    found += [(header, header_value(",".join(names[:_MOST_NAMES]))) for header, names in matched.items()]
    found += _selected(context)
    if context.recipe is not None:
        found.append((b"x-vsr-session-phase", b"tool_loop" if in_tool_loop(context.view) else b"user_turn"))
    if context.selection is not None and context.selection.use_reasoning is not None:
        found.append((b"x-vsr-selected-reasoning", b"on" if context.selection.use_reasoning else b"off"))
    return found


def _selected(context: RequestContext) -> RawHeaders:
    """The domain and the modality of the request, and its tokens, where a signal was asked for them."""
    found: dict[bytes, bytes] = {}
    best = 0.0
    for observation in context.observations:
        if observation.kind == "context" and observation.value is not None:
            found[b"x-vsr-context-token-count"] = b"%d" % observation.value
        elif observation.truth is not Truth.TRUE:
            continue
        elif observation.kind == "modality":
            found[b"x-vsr-selected-modality"] = header_value(observation.name)
        elif observation.kind == "domain" and (observation.confidence or 0.0) >= best:
            best = observation.confidence or 0.0
            found[b"x-vsr-selected-category"] = header_value(observation.name)
    return list(found.items())


def trace(context: RequestContext) -> str:
    """`decision`, `model`, `signals`, `errors`, `timings_ms` and more, as ASCII JSON of at most MOST_BYTES; `cut` says that evidence, then signals
    that did not match, then all but the first signals are missing."""
    signals = {observation.key: _shown(observation) for observation in context.observations}
    whole = _document(context, signals)
    written = _written(whole)
    if len(written) <= MOST_BYTES:
        return written
    for observation in signals.values():
        observation.pop("evidence", None)
    kept = {key: value for key, value in signals.items() if value["result"] != "no_match"}
    for smaller in (signals, kept):
        written = _written({**_document(context, smaller), "cut": True})
        if len(written) <= MOST_BYTES:
            return written
    while kept:
        kept = dict(list(kept.items())[: len(kept) // 2])
        written = _written({**_document(context, kept), "cut": True})
        if len(written) <= MOST_BYTES:
            return written
    return _written({"decision": _short(context.decision_name), "model": _short(context.selection.model if context.selection else None), "cut": True})


def _document(context: RequestContext, signals: Mapping[str, Any]) -> dict[str, Any]:
    decision, selection = context.decision, context.selection
    return {
        "generation": context.generation.number,
        "recipe": context.recipe.name if context.recipe else None,
        "decision": context.decision_name,
        "rules": list(decision.matched_rules) if decision else [],
        "model": selection.model if selection else None,
        "algorithm": selection.method if selection else None,
        "reason": selection.reason if selection else None,
        "signals": dict(signals),
        "errors": {observation.key: observation.reason for observation in context.observations if observation.truth is Truth.UNKNOWN},
        "timings_ms": {stage: round(spent, 3) for stage, spent in context.timings_ms.items()},
        "attempts": context.attempts,
    }


def _shown(observation: Observation) -> dict[str, Any]:
    found: dict[str, Any] = {"result": {Truth.TRUE: "match", Truth.FALSE: "no_match", Truth.UNKNOWN: "unknown"}[observation.truth]}
    for name in ("confidence", "value", "reason"):
        value = getattr(observation, name)
        if value is not None:
            found[name] = round(value, 6) if isinstance(value, float) else value
    if observation.labels:
        found["labels"] = {label: round(score, 6) for label, score in observation.labels.items()}
    if observation.matched_labels:
        found["matched"] = list(observation.matched_labels)
    if observation.evidence:
        found["evidence"] = dict(observation.evidence)
    return found


def _written(document: Mapping[str, Any]) -> str:
    return json.dumps(document, separators=(",", ":"), default=str)


def _short(text: str | None) -> str | None:
    return text if text is None else text[:200]
