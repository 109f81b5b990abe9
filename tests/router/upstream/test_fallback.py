"""From one model to another: when, how often, and what the client hears."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from headway.router.upstream import circuit as circuit_module
from headway.router.upstream.circuit import BreakerSettings, Circuit
from headway.router.upstream.errors import NoBackendError, UpstreamError
from tests.router.upstream.harness import Sender, free_port, model, run
from tests.router.upstream.routed import routed, routed_document, send
from tests.router.upstream.scripted_backend import ScriptedBackend, answers, chunk, never, streams

TWO = [{"model": "a"}, {"model": "b", "use_reasoning": True}]


def test_the_next_candidate_answers_where_the_policy_says_so() -> None:
    async def work(fallback: dict[str, Any]) -> tuple[int, Any, str | None, list[str]]:
        async with ScriptedBackend([answers(b"{}", 500)]) as bad, ScriptedBackend([answers()]) as good:
            models = [model("a", bad.endpoint), model("b", good.endpoint, reasoning={"family": "qwen3"})]
            sender = Sender(routed_document(models, {"modelRefs": TWO}, {"fallback": fallback}))
            reply, context = await send(sender, "a", "b", use_reasoning=False)
            await sender.close()
            assert context.selection is not None
            if good.asked:
                assert good.asked[0].body["model"] == "b"
                assert good.asked[0].body["chat_template_kwargs"] == {"enable_thinking": True}  # the words of its own modelRef
                assert sender.services.metrics.value("llm_reasoning_template_usage", "qwen3", "enable_thinking") == 1
            return reply.status, context.selection.model, context.response_headers.get("x-vsr-fallback-attempts"), context.attempts

    assert run(lambda: work({"enabled": True})) == (200, "b", "2", ["a/b0: status_500", "b/b0: ok"])
    assert run(lambda: work({"enabled": False})) == (500, "a", None, ["a/b0: status_500"])
    assert run(lambda: work({"enabled": True, "max_attempts": 1})) == (500, "a", None, ["a/b0: status_500"])
    assert run(lambda: work({"enabled": True, "retryable_status_codes": [503]})) == (500, "a", None, ["a/b0: status_500"])


def test_a_lora_is_asked_for_by_its_name_at_the_backends_of_its_model() -> None:
    async def work() -> None:
        async with ScriptedBackend([answers(b"{}", 500), answers()]) as backend:
            refs = [{"model": "a", "lora_name": "law"}, {"model": "a", "lora_name": "med"}]
            cards = [{"name": "a", "loras": [{"name": "law"}, {"name": "med"}]}]
            routing = {"fallback": {"enabled": True}, "modelCards": cards}
            sender = Sender(routed_document([model("a", backend.endpoint)], {"modelRefs": refs}, routing))
            context = routed(sender, "law", "med", lora="law")
            assert context.selection is not None
            context.selection = replace(context.selection, model="a")
            reply = await sender.upstreams.send(context)
            assert [asked.body["model"] for asked in backend.asked] == ["law", "med"]
            assert (reply.status, context.selection.model, context.selection.lora) == (200, "a", "med")
            await sender.close()

    run(work)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_a_wrong_request_is_no_reason_to_ask_another_model(status: int) -> None:
    async def work() -> None:
        async with ScriptedBackend([answers(b"{}", status)]) as bad, ScriptedBackend([answers()]) as good:
            models = [model("a", bad.endpoint), model("b", good.endpoint)]
            sender = Sender(routed_document(models, {"modelRefs": TWO}, {"fallback": {"enabled": True}}))
            reply, _ = await send(sender, "a", "b")
            assert (reply.status, good.asked) == (status, [])
            await sender.close()

    run(work)


def test_a_decision_overrides_the_policy_of_its_recipe() -> None:
    async def work() -> None:
        async with ScriptedBackend([answers()]) as good:
            models = [model("a", f"127.0.0.1:{free_port()}"), model("b", good.endpoint)]
            decision = {"modelRefs": TWO, "fallback": {"enabled": True}}
            sender = Sender(routed_document(models, decision, {"fallback": {"enabled": False}}))
            reply, context = await send(sender, "a", "b")
            assert (reply.status, context.selection and context.selection.status) == (200, "fallback")
            await sender.close()

    run(work)


def test_a_model_that_never_answers_costs_no_more_than_its_attempt() -> None:
    async def work() -> None:
        async with ScriptedBackend([never]) as stuck, ScriptedBackend([answers()]) as good:
            models = [model("a", stuck.endpoint), model("b", good.endpoint)]
            fallback = {"enabled": True, "per_attempt_timeout": "100ms"}
            sender = Sender(routed_document(models, {"modelRefs": TWO}, {"fallback": fallback}))
            reply, context = await send(sender, "a", "b")
            assert (reply.status, context.attempts) == (200, ["a/b0: first_byte_timeout", "b/b0: ok"])
            await sender.close()

    run(work)


def test_nothing_is_asked_again_once_bytes_of_a_stream_were_passed_on() -> None:
    async def work() -> None:
        async with ScriptedBackend([streams(chunk("a"), break_off=True)]) as bad, ScriptedBackend([answers()]) as good:
            models = [model("a", bad.endpoint), model("b", good.endpoint)]
            sender = Sender(routed_document(models, {"modelRefs": TWO}, {"fallback": {"enabled": True}}))
            reply, _ = await send(sender, "a", "b", body={"model": "auto", "messages": [], "stream": True})
            with pytest.raises(UpstreamError, match='"a/b0" broke off'):
                async for _ in reply.raw_chunks or ():  # type: ignore[union-attr]
                    pass
            assert good.asked == []
            await sender.close()

    run(work)


def test_when_every_candidate_fails_the_last_failure_is_told() -> None:
    async def work() -> None:
        async with ScriptedBackend([answers({"error": {"message": "full"}}, 503)]) as bad:
            models = [model("a", f"127.0.0.1:{free_port()}"), model("b", bad.endpoint)]
            sender = Sender(routed_document(models, {"modelRefs": TWO}, {"fallback": {"enabled": True}}))
            reply, context = await send(sender, "a", "b")
            assert (reply.status, json.loads(reply.raw or b"")["error"]["message"]) == (503, "full")
            assert context.response_headers["x-vsr-fallback-attempts"] == "2"
            await sender.close()

    run(work)


def test_an_open_circuit_keeps_a_failing_model_from_being_asked() -> None:
    async def work() -> None:
        async with ScriptedBackend([answers(b"{}", 500)]) as bad, ScriptedBackend([answers()]) as good:
            models = [model("a", bad.endpoint), model("b", good.endpoint)]
            fallback = {"enabled": True, "circuit_breaker": {"consecutive_failures": 2, "cooldown_period": "1h"}}
            found = routed_document(models, {"modelRefs": TWO}, {"fallback": fallback})
            sender = Sender(found)
            for _ in range(4):
                reply, context = await send(sender, "a", "b")
                assert reply.status == 200
            assert len(bad.asked) == 2
            assert context.attempts == ["a: circuit_open", "b/b0: ok"]
            again = Sender(found, sender.services)  # a reload closes no circuit
            with pytest.raises(NoBackendError, match="circuit"):
                await send(again, "a")
            await sender.close()

    run(work)


def test_a_circuit_opens_tries_again_after_its_pause_and_closes_with_a_success(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(circuit_module.time, "monotonic", lambda: now[0])
    settings, circuit = BreakerSettings(failures=2, cooldown=10, probes=1), Circuit()

    def attempt(ok: bool | None) -> bool:
        admitted = circuit.begin(settings)
        if admitted:
            circuit.end(settings, ok)
        return admitted

    assert [attempt(False), attempt(True), attempt(False), circuit.state] == [True, True, True, "closed"]
    assert [attempt(False), circuit.state, attempt(True)] == [True, "open", False]
    now[0] += 10
    assert circuit.state == "half_open"
    assert [circuit.begin(settings), circuit.begin(settings)] == [True, False]  # one probe at a time
    circuit.end(settings, None)  # its client left: nothing is known
    assert [circuit.state, attempt(False), circuit.state] == ["half_open", True, "open"]
    now[0] += 10
    assert [attempt(True), circuit.state, circuit.failures] == [True, "closed", 0]
