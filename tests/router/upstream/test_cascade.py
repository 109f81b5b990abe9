"""The confidence cascade: who answers, what the client sees of it, what it costs."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from headway.router.config.document.algorithms import ConfidenceAlgorithm
from headway.router.request.decoding import body_of, chunks_of
from headway.router.upstream.cascading import confidence
from headway.router.upstream.errors import UpstreamError, UpstreamTimeoutError
from tests.router.upstream.harness import Sender, free_port, model, run
from tests.router.upstream.routed import routed_document, send
from tests.router.upstream.scripted_backend import (
    DONE,
    WHOLE,
    ScriptedBackend,
    answers,
    chunk,
    hangs_up,
    never,
    streams,
)


def said(text: str, *logprobs: tuple[float, float]) -> dict[str, Any]:
    """An answer whose tokens have these log probabilities: of the token, and of the second likeliest."""
    content = [{"token": "t", "logprob": first, "top_logprobs": [{"token": "t", "logprob": first}, {"token": "u", "logprob": second}]} for first, second in logprobs]
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop", "logprobs": {"content": content}}
    return {**WHOLE, "choices": [choice]}


SURE, UNSURE = said("sure", (-0.1, -5.0), (-0.2, -4.0)), said("unsure", (-2.0, -2.1), (-1.5, -1.6))


@pytest.mark.parametrize(
    ("method", "sure", "unsure"),
    [
        ("avg_logprob", -0.15, -1.75),
        ("margin", 4.35, 0.1),
        ("hybrid", (math.exp(-0.15) + 1 - math.exp(-4.35)) / 2, (math.exp(-1.75) + 1 - math.exp(-0.1)) / 2),
    ],
)
def test_confidence_is_that_of_the_formulas(method: str, sure: float, unsure: float) -> None:
    settings = ConfidenceAlgorithm.model_validate({"confidence_method": method})
    assert confidence(SURE, settings) == pytest.approx(sure)
    assert confidence(UNSURE, settings) == pytest.approx(unsure)
    assert confidence(WHOLE, settings) is None


def run_cascade(first: Any, second: Any, settings: dict[str, Any] | None = None, **body: Any) -> tuple[Any, Any, list[Any], list[Any]]:
    async def work() -> tuple[Any, Any, list[Any], list[Any]]:
        async with ScriptedBackend([first]) as small, ScriptedBackend([second]) as large:
            models = [model("small", small.endpoint), model("large", large.endpoint)]
            algorithm = {"type": "confidence", "confidence": settings or {}}
            decision = {"modelRefs": [{"model": "small"}, {"model": "large"}], "algorithm": algorithm}
            sender = Sender(routed_document(models, decision))
            asked = {"model": "auto", "messages": [{"role": "user", "content": "hi"}], **body}
            try:
                reply, context = await send(sender, "small", "large", body=asked, status="execution_required")
                if reply.streams:
                    reply.body = {"chunks": [each async for each in chunks_of(reply)]}
                return reply, context, small.asked, large.asked
            finally:
                await sender.close()

    return run(work)


def test_a_sure_answer_is_taken_and_nobody_else_is_asked() -> None:
    reply, context, small, large = run_cascade(answers(SURE), answers())
    assert (len(small), len(large), reply.path, context.selection.model) == (1, 0, "looper", "small")
    assert small[0].body["logprobs"] is True
    assert small[0].body["top_logprobs"] == 2
    assert "logprobs" not in body_of(reply)["choices"][0]  # the client did not ask for them
    assert context.response_headers["x-vsr-looper-models-used"] == "small"
    assert context.side_usage == []


def test_an_unsure_answer_is_given_up_for_the_next_model_and_still_paid() -> None:
    reply, context, _, large = run_cascade(answers(UNSURE), answers())
    assert json.loads(reply.raw)["choices"][0]["message"]["content"] == "hello"
    assert "logprobs" not in large[0].body
    assert context.selection.model == "large"
    assert context.response_headers["x-vsr-looper-iterations"] == "2"
    assert context.response_headers["x-vsr-inference-call-count"] == "2"
    assert [(name, answer["usage"]["total_tokens"]) for name, answer in context.side_usage] == [("small", 7)]
    told = context.response_headers
    assert [told[f"x-vsr-looper-{name}-tokens"] for name in ("prompt", "completion", "total")] == ["6", "8", "14"]
    assert float(told["x-vsr-looper-latency-ms"]) > 0
    usage = {"prompt_tokens": 3, "cached_input_tokens": 0, "cache_write_tokens": 0, "completion_tokens": 4}
    calls = [{"model": name, "role": "subject", "stage": "cascade", "status": "completed", "usage": usage} for name in ("small", "large")]
    assert json.loads(told["x-vsr-model-usage"]) == {"version": 1, "complete": True, "calls": calls}


def test_the_threshold_is_the_configured_one() -> None:
    assert run_cascade(answers(UNSURE), answers(), {"threshold": -2.0})[1].selection.model == "small"
    assert run_cascade(answers(SURE), answers(), {"threshold": -0.1})[1].selection.model == "large"


def test_a_backend_without_log_probabilities_is_never_sure() -> None:
    assert run_cascade(answers(), answers())[1].selection.model == "large"


def test_when_the_last_model_fails_the_surest_answer_before_it_is_taken() -> None:
    reply, context, _, _ = run_cascade(answers(UNSURE), answers(b"{}", 500))
    assert (body_of(reply)["choices"][0]["message"]["content"], context.selection.model) == ("unsure", "small")
    assert context.side_usage == []


def test_a_failure_is_skipped_or_ends_the_cascade() -> None:
    assert run_cascade(answers(b"{}", 500), answers())[1].selection.model == "large"
    reply, _, _, large = run_cascade(answers(b"{}", 500), answers(), {"on_error": "fail"})
    assert (reply.status, large) == (500, [])
    reply, _, _, large = run_cascade(answers(b"{}", 400), answers())
    assert (reply.status, large) == (400, [])  # the request's own fault


def test_a_stream_is_one_whoever_answers() -> None:
    reply, _, small, _ = run_cascade(answers(SURE), answers(), stream=True, stream_options={"include_usage": True})
    assert small[0].body["stream"] is False
    assert "stream_options" not in small[0].body
    text = "".join(each["choices"][0]["delta"].get("content") or "" for each in reply.body["chunks"] if each["choices"])
    assert text == "sure"
    assert reply.body["chunks"][-1]["usage"]["total_tokens"] == 7
    reply, _, _, large = run_cascade(answers(UNSURE), streams(chunk("big", "stop"), DONE), stream=True)
    assert large[0].body["stream"] is True
    assert reply.body["chunks"][0]["choices"][0]["delta"]["content"] == "big"


def test_the_models_of_a_cascade_share_their_time() -> None:
    async def work() -> None:
        async with ScriptedBackend([never]) as small, ScriptedBackend([answers()]) as large:
            decision = {"modelRefs": [{"model": "small"}, {"model": "large"}], "algorithm": {"type": "confidence"}}
            looper = {"integrations": {"looper": {"timeout_seconds": 1}}}
            sender = Sender(routed_document([model("small", small.endpoint), model("large", large.endpoint)], decision, **{"global": looper}))
            with pytest.raises(UpstreamTimeoutError, match="the models of a cascade have 1 s"):
                await send(sender, "small", "large", status="execution_required")
            assert (len(small.asked), len(large.asked)) == (1, 0)
            await sender.close()

    run(work)


def test_no_answer_at_all_is_an_error() -> None:
    async def work() -> None:
        models = [model(name, f"127.0.0.1:{free_port()}") for name in ("small", "large")]
        sender = Sender(routed_document(models, {"modelRefs": [{"model": "small"}, {"model": "large"}], "algorithm": {"type": "confidence"}}))
        with pytest.raises(UpstreamError, match='"large/b0" cannot be reached'):
            await send(sender, "small", "large", status="execution_required")
        await sender.close()

    run(work)


@pytest.mark.parametrize("first", [answers({"error": {"message": "no"}}, 500), hangs_up])
def test_what_a_model_used_that_failed_is_not_known(first: Any) -> None:
    told = run_cascade(first, answers())[1].response_headers
    receipt = json.loads(told["x-vsr-model-usage"])
    assert (receipt["complete"], [call["status"] for call in receipt["calls"]]) == (False, ["failed", "completed"])
    assert "x-vsr-looper-total-tokens" not in told


def test_what_a_stream_uses_is_not_known_when_its_headers_go_out() -> None:
    told = run_cascade(answers(UNSURE), streams(chunk("a"), chunk("", "stop"), DONE), stream=True)[1].response_headers
    receipt = json.loads(told["x-vsr-model-usage"])
    assert (receipt["complete"], receipt["calls"][1]["usage"]) == (False, None)
    assert "x-vsr-looper-total-tokens" not in told
