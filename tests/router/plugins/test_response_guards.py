"""hallucination and response_jailbreak, on whole answers and streams."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headway.errors import ConfigError
from headway.router.deployments.calls import Unanswered
from headway.router.plugins.completion import completion
from tests.router.plugins.response_cache.backends import cache
from tests.router.plugins.rig import EMBEDDING, Rig, Told, chat, run
from tests.router.scripted_calls import ScriptedCalls

GUARD = {"model_catalog": {"bindings": {"prompt_guard": {"deployment": "guard", "contract": "label_distribution.v1"}, **EMBEDDING["model_catalog"]["bindings"]}}}
SPANS = {"model_catalog": {"bindings": {"hallucination_detector": {"deployment": "hal", "contract": "token_spans.v1"}}}}


def guard(bad: str = "evil") -> ScriptedCalls:
    return ScriptedCalls(heads=lambda text: {"jailbreak": 0.9 if bad in text else 0.1, "benign": 0.1 if bad in text else 0.9}, vectors=lambda _: [1.0, 0.0])


def jailbreak(tmp_path: Path, answer: str, *more: Any, models: ScriptedCalls | None = None, settings: Any = GUARD, **configuration: Any) -> Rig:
    plugin = ("response_jailbreak", {"enabled": True, **configuration})
    return Rig(tmp_path, plugin, *more, models=models or guard(), settings=settings, answers=lambda context: completion(answer, "m"))


def is_blocked(told: Told) -> bool:
    """403 with the envelope of errors, and nothing of the answer."""
    assert told.body is not None
    return (told.reply.status, told.path, told.body["error"]["reason"], told.chunks) == (403, "blocked", "response_blocked", []) and "evil" not in str(told.body)


@pytest.mark.parametrize("streams", [False, True])
def test_block_holds_the_answer_back(tmp_path: Path, streams: bool) -> None:
    good = run(lambda: jailbreak(tmp_path, "fine " * 50).ask(chat("q", stream=streams)))
    assert (good.text, len(good.chunks) > 3) == ("fine " * 50, streams)
    assert is_blocked(run(lambda: jailbreak(tmp_path, "this is evil").ask(chat("q", stream=streams))))


@pytest.mark.parametrize("streams", [False, True])
@pytest.mark.parametrize("why", [Unanswered("timeout"), Unanswered("input_limit")])
def test_an_answer_that_nobody_judged_is_blocked(tmp_path: Path, streams: bool, why: Unanswered) -> None:
    assert is_blocked(run(lambda: jailbreak(tmp_path, "fine", models=ScriptedCalls(heads=lambda text: why)).ask(chat("q", stream=streams))))


def test_the_module_may_let_unanswered_pass(tmp_path: Path) -> None:
    settings = {"model_catalog": {**GUARD["model_catalog"], "modules": {"prompt_guard": {"on_error": "allow"}}}}
    rig = jailbreak(tmp_path, "fine", models=ScriptedCalls(heads=lambda text: Unanswered("timeout")), settings=settings)
    assert run(lambda: rig.ask("q")).text == "fine"


def test_header_and_none_let_it_pass(tmp_path: Path) -> None:
    told = run(lambda: jailbreak(tmp_path, "evil", action="header").ask("q"))
    assert (told.text, told.context.warnings) == ("evil", ["response_jailbreak"])
    told = run(lambda: jailbreak(tmp_path, "evil", action="none").ask("q"))
    assert (told.text, told.context.warnings) == ("evil", [])
    rig = jailbreak(tmp_path, "evil", action="header")
    told = run(lambda: rig.ask(chat("q", stream=True)))
    assert told.text == "evil"
    assert [chunk.get("x_vsr_response_warnings") for chunk in told.chunks if chunk["choices"] and chunk["choices"][0]["finish_reason"]] == [["response_jailbreak"]]
    assert rig.services.metrics.value("headway_response_guard", "response_jailbreak", "flagged") == 1


def test_a_blocked_answer_is_not_kept_and_a_flagged_one_keeps_its_flag(tmp_path: Path) -> None:
    async def work() -> None:
        blocked = jailbreak(tmp_path, "evil", cache(mode="exact"))
        for _ in range(2):
            assert is_blocked(await blocked.ask("q"))
        assert len(blocked.sent) == 2
        flagged = jailbreak(tmp_path, "evil", cache(mode="exact"), action="header")
        await flagged.ask("q")
        told = await flagged.ask("q")
        assert (told.path, told.context.warnings) == ("cache", ["response_jailbreak"])

    run(work)


def test_rules_for_responses_hold(tmp_path: Path) -> None:
    rule = {"name": "r", "method": "contrastive", "threshold": 0.5, "jailbreak_patterns": ["evil"], "direction": "response"}
    routing = {"signals": {"jailbreak": [rule]}}
    models = ScriptedCalls(vectors=lambda given: [1.0, 0.0] if "evil" in given else [0.0, 1.0])
    bad = run(
        lambda: Rig(tmp_path, ("response_jailbreak", {"enabled": True}), models=models, settings=GUARD, routing=routing, answers=lambda c: completion("evil", "m")).ask("q")
    )
    assert is_blocked(bad)
    rig = Rig(tmp_path, ("response_jailbreak", {"enabled": True}), models=models, settings=GUARD, routing=routing, answers=lambda c: completion("ok", "m"))
    assert run(lambda: rig.ask("q")).text == "ok"


def test_a_guard_whose_module_is_off_is_refused(tmp_path: Path) -> None:
    settings = {"model_catalog": {**GUARD["model_catalog"], "modules": {"prompt_guard": {"enabled": False}}}}
    with pytest.raises(ConfigError, match="switched off"):
        jailbreak(tmp_path, "x", settings=settings)


ANSWER = "Rome has 3 million people and 9 rivers."
GROUNDED = {
    "model": "auto",
    "messages": [
        {"role": "user", "content": "How big is Rome?"},
        {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "1", "content": "Rome has 3 million people."},
    ],
}


def detector(found: Any) -> ScriptedCalls:
    return ScriptedCalls(spans=lambda given: found, heads=lambda text: {"fact_check_needed": 0.99, "no": 0.01})


def hallucination(tmp_path: Path, body: Any, found: Any, settings: Any = SPANS, models: ScriptedCalls | None = None, **configuration: Any) -> tuple[Any, Rig]:
    rig = Rig(tmp_path, ("hallucination", {"enabled": True, **configuration}), models=models or detector(found), settings=settings, answers=lambda context: completion(ANSWER, "m"))
    return run(lambda: rig.ask(body)), rig


UNSUPPORTED = [("hallucinated", 26, 38, 0.9), ("supported", 0, 10, 0.99)]


def test_claims_without_a_source_are_flagged(tmp_path: Path) -> None:
    told, rig = hallucination(tmp_path, GROUNDED, UNSUPPORTED)
    assert (told.text, told.context.warnings) == (ANSWER, ["hallucination"])
    asked = next(call for call in rig.models.calls if call[0] == "find_spans")
    assert asked[2] == [{"context": "Rome has 3 million people.", "question": "How big is Rome?", "answer": ANSWER}]
    told, _ = hallucination(tmp_path, GROUNDED, [("supported", 0, 10, 0.99)])
    assert told.context.warnings == []
    told, _ = hallucination(tmp_path, GROUNDED, Unanswered("timeout"))
    assert (told.text, told.context.warnings) == (ANSWER, [])


def test_warnings_in_the_body(tmp_path: Path) -> None:
    told, _ = hallucination(tmp_path, GROUNDED, UNSUPPORTED, hallucination_action="body", include_hallucination_details=True)
    assert told.text.startswith(ANSWER + "\n\nNote: parts of this answer")
    assert told.text.endswith("\n- and 9 rivers")
    streamed, _ = hallucination(tmp_path, {**GROUNDED, "stream": True}, UNSUPPORTED, hallucination_action="body")
    assert streamed.text.startswith(ANSWER + "\n\nNote: parts")
    finishes = [chunk["choices"][0]["finish_reason"] for chunk in streamed.chunks if chunk["choices"]]
    assert finishes[-1] == "stop"
    assert set(finishes[:-1]) == {None}


def test_facts_without_any_source(tmp_path: Path) -> None:
    settings = {"model_catalog": {"bindings": {"fact_check_classifier": {"deployment": "fc", "contract": "label_distribution.v1"}}}}
    told, _ = hallucination(tmp_path, "How big is Rome?", [], settings)
    assert told.context.warnings == ["unverified_factual"]
    told, _ = hallucination(tmp_path, "How big is Rome?", [], settings, unverified_factual_action="none")
    assert told.context.warnings == []


def test_a_decision_model_judges_where_nothing_is_bound(tmp_path: Path) -> None:
    models = ScriptedCalls(decisions=lambda question, state: {"type": "noul", "noul": 0.8})
    told, _ = hallucination(tmp_path, GROUNDED, None, EMBEDDING, models)
    assert told.context.warnings == ["hallucination"]
    assert models.full == [True]


def test_no_model_is_started_for_a_default(tmp_path: Path) -> None:
    rig = Rig(tmp_path, ("hallucination", {"enabled": True}), settings=SPANS)
    assert rig.plugins[0].deployments() == {"hal"}
    rig = Rig(tmp_path, ("hallucination", {"enabled": True}), settings={"model_catalog": {}})
    assert rig.plugins[0].deployments() == {"primary"}


def test_a_check_whose_module_is_off_is_refused(tmp_path: Path) -> None:
    settings = {"model_catalog": {**SPANS["model_catalog"], "modules": {"hallucination_mitigation": {"enabled": False}}}}
    with pytest.raises(ConfigError, match="switched off"):
        hallucination(tmp_path, GROUNDED, UNSUPPORTED, settings)
