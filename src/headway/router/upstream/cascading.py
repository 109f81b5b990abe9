"""A cascade, run: each model answers in turn, until one is sure enough."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson

from headway.router.config.document.algorithms import ConfidenceAlgorithm
from headway.router.metrics.registry import RouterMetrics
from headway.router.plugins.completion import replayed
from headway.router.request.context import RequestContext
from headway.router.request.decoding import body_of
from headway.router.request.reply import Reply
from headway.router.selection.result import Selection
from headway.router.upstream.cascade_receipt import CascadeReceipt
from headway.router.upstream.errors import UpstreamError

_THRESHOLDS: Mapping[str, float] = {"avg_logprob": -1.0, "margin": 0.5, "hybrid": 0.5}
Ask = Callable[[Selection, Mapping[str, Any]], Awaitable[Reply]]


@dataclass(frozen=True, slots=True)
class Answer:
    """One model's, with how sure it is; None when the backend gives no log probabilities."""

    selection: Selection
    reply: Reply
    confidence: float | None


async def cascade(
    context: RequestContext, settings: ConfidenceAlgorithm, strict: bool, order: list[Selection], ask: Ask, metrics: RouterMetrics
) -> Reply:
    """The first answer that is sure enough, else that of the last model; when that fails, the surest one before it.

    A model without log probabilities is never sure. `strict` ends with the first failure; otherwise the next model is asked. Only answers are
    judged, so earlier models never stream; the last one does when the client wants a stream. Raises UpstreamError when no model answered.
    """
    threshold = _THRESHOLDS[settings.confidence_method] if settings.threshold is None else settings.threshold
    unsure: list[Answer] = []
    failure: Reply | UpstreamError | None = None
    receipt = CascadeReceipt()
    for at, selection in enumerate(order):
        last = at == len(order) - 1
        model = selection.model or ""
        call = receipt.begin(model)
        try:
            reply = await ask(selection, {} if last else _judged_fields(context))
        except UpstreamError as error:
            metrics.count("llm_looper_attempts", model, "failed")
            failure = error
            if strict:
                raise
            continue
        if reply.status >= 400:
            metrics.count("llm_looper_attempts", model, "failed")
            if strict or reply.status in (400, 401, 403, 413, 422):  # the request's own fault: other models would say the same
                return _told(context, selection, reply, receipt)
            failure = reply
            continue
        call.completed(_whole(reply))
        if last:
            metrics.count("llm_looper_attempts", model, "accepted")
            return _told(context, selection, reply, receipt)
        answer = Answer(selection, reply, confidence(body_of(reply), settings))
        context.side_usage.append((model, body_of(reply)))
        if answer.confidence is not None and answer.confidence >= threshold:
            metrics.count("llm_looper_attempts", model, "accepted")
            context.side_usage.pop()  # the client gets this one
            return _told(context, selection, _for_client(context, reply), receipt)
        metrics.count("llm_looper_attempts", model, "unsure")
        unsure.append(answer)
    if unsure:
        best = max(unsure, key=lambda each: -math.inf if each.confidence is None else each.confidence)
        context.side_usage.remove((best.selection.model or "", body_of(best.reply)))
        return _told(context, best.selection, _for_client(context, best.reply), receipt)
    if isinstance(failure, Reply):
        return failure
    assert failure is not None
    raise failure


def confidence(body: Mapping[str, Any], settings: ConfidenceAlgorithm) -> float | None:
    """Of the first choice; None without log probabilities (of the two likeliest tokens, for a margin)."""
    tokens = list(_tokens(body))
    if not tokens:
        return None
    mean = sum(chosen for chosen, _ in tokens) / len(tokens)
    if settings.confidence_method == "avg_logprob":
        return mean
    margins = [margin for _, margin in tokens if margin is not None]
    if not margins:
        return None
    margin = sum(margins) / len(margins)
    if settings.confidence_method == "margin":
        return margin
    weights = settings.hybrid_weights
    total = weights.logprob_weight + weights.margin_weight
    return (weights.logprob_weight * math.exp(min(mean, 0.0)) + weights.margin_weight * (1 - math.exp(-margin))) / total


def _tokens(body: Mapping[str, Any]) -> Iterator[tuple[float, float | None]]:
    """Log probability of each token, and its distance to that of the second likeliest one."""
    try:
        content = body["choices"][0]["logprobs"]["content"] or ()
        for token in content:
            top = sorted((float(other["logprob"]) for other in token.get("top_logprobs") or ()), reverse=True)
            yield float(token["logprob"]), (top[0] - top[1] if len(top) > 1 else None)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError):
        return


def _judged_fields(context: RequestContext) -> dict[str, Any]:
    top = context.body.get("top_logprobs")
    fields: dict[str, Any] = {"stream": False, "logprobs": True, "top_logprobs": max(2, top if isinstance(top, int) else 0)}
    return {**fields, "stream_options": None}


def _for_client(context: RequestContext, reply: Reply) -> Reply:
    """Without the log probabilities that only we asked for; as a stream for who wants one."""
    body = body_of(reply)
    if not context.body.get("logprobs"):
        body = {**body, "choices": [{key: value for key, value in choice.items() if key != "logprobs"} for choice in body.get("choices") or ()]}
    return replayed(body, context, "looper") if context.streams else replace(reply, body=body, raw=None)


def _whole(reply: Reply) -> Mapping[str, Any] | None:
    """An answer in one piece, without a mark on the reply that somebody looked into it; None for a stream."""
    if reply.raw is None:
        return reply.body
    found = orjson.loads(reply.raw)
    return found if isinstance(found, Mapping) else None


def _told(context: RequestContext, selection: Selection, reply: Reply, receipt: CascadeReceipt) -> Reply:
    context.selection = replace(selection, status="selected")
    context.response_headers.update(receipt.headers(selection.model or ""))
    return replace(reply, path="looper")
