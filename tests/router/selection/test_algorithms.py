"""What each algorithm chooses, and what it does when it cannot."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from typing import Any

import pytest

from headway.errors import ConfigError, ContextLengthError, RequestError
from headway.router.deployments.calls import Unanswered
from headway.router.selection.result import Selection
from tests.router.selection.harness import Chooser, ScriptedCalls, domain

AB = [{"model": "a"}, {"model": "b"}]
ABC = [*AB, {"model": "c"}]
PRICES = {"a": {"prompt_per_1m": 10.0, "completion_per_1m": 30.0}, "b": {"prompt_per_1m": 1.0, "completion_per_1m": 3.0}}


def select(chooser: Chooser, *args: Any, **body: Any) -> Selection:
    return asyncio.run(chooser.selector.select(chooser.context(*args, **body)))


# -- static and random


def test_static_takes_the_first_the_heaviest_or_the_best_of_the_domain() -> None:
    assert select(Chooser(AB)).order == ("a", "b")
    assert select(Chooser([{"model": "a", "weight": 1.0}, {"model": "b", "weight": 2.0}])).order == ("b", "a")
    scores = [{"model": "a", "score": 0.1}, {"model": "b", "score": 0.9}]
    signals = {"domains": [{"name": "law", "model_scores": scores}, {"name": "math", "model_scores": [{"model": "a", "score": 1.0}]}]}
    chooser = Chooser([{"model": "a", "weight": 5.0}, {"model": "b"}], signals=signals)
    assert select(chooser).model == "a"
    assert select(chooser, "hi", (domain("law", 0.6),)).model == "b"
    assert select(chooser, "hi", (domain("law", 0.6), domain("math", 0.7))).model == "a"


def test_a_selection_carries_the_words_of_its_model_ref() -> None:
    refs = [{"model": "a", "use_reasoning": True, "reasoning_effort": "high", "lora_name": "law"}]
    chooser = Chooser(refs, modelCards=[{"name": "a", "loras": [{"name": "law"}]}])
    found = select(chooser)
    assert (found.use_reasoning, found.reasoning_effort, found.lora, found.status) == (True, "high", "law", "selected")


def test_random_gives_each_candidate_its_share_and_repeats_a_seed() -> None:
    chooser = Chooser(ABC, {"type": "random"})
    counts = Counter(select(chooser).model for _ in range(600))
    assert all(130 < counts[name] < 270 for name in "abc")  # 200 +- 6 standard deviations
    context = chooser.context()
    context.sampling_seed = 7
    found = [asyncio.run(chooser.selector.select(context)) for _ in range(5)]
    assert len({each.order for each in found}) == 1
    assert (found[0].sampled, found[0].sampling_seed) == (True, 7)


# -- latency


def observed(chooser: Chooser, metric: Any, **seconds: float) -> None:
    for name, value in seconds.items():
        for _ in range(10):
            chooser.services.latencies.note(name, metric, value)


def test_latency_aware_takes_the_fastest_relative_to_the_others() -> None:
    chooser = Chooser(ABC, {"type": "latency_aware", "latency_aware": {"tpot_percentile": 50, "ttft_percentile": 50}})
    assert (select(chooser).model, select(chooser).status) == ("a", "fallback")  # nothing observed
    observed(chooser, "tpot", a=0.02, b=0.01)
    observed(chooser, "ttft", a=0.1, b=0.3)
    found = select(chooser)
    assert (found.model, found.order[-1]) == ("a", "c")  # (2 + 1) / 2 against (1 + 3) / 2; c was never seen
    assert found.scores["a"] == pytest.approx(1 / 1.5)


def test_the_percentile_is_that_of_the_nearest_rank() -> None:
    chooser = Chooser(AB)
    for value in range(1, 101):
        chooser.services.latencies.note("a", "ttft", float(value))
    book = chooser.services.latencies
    assert [book.percentile("a", "ttft", percent) for percent in (1, 50, 95, 100)] == [1, 50, 95, 100]
    assert book.percentile("b", "ttft", 50) is None


# -- multi_factor


def test_multi_factor_weighs_its_factors() -> None:
    refs = [{"model": "a", "weight": 0.9}, {"model": "b", "weight": 0.2}]

    def chosen(weights: dict[str, float] | None, **seconds: float) -> Selection:
        settings = {} if weights is None else {"weights": weights}
        chooser = Chooser(refs, {"type": "multi_factor", "multi_factor": settings}, prices=PRICES)
        observed(chooser, "tpot", **seconds)
        return select(chooser)

    assert chosen({"quality": 1.0}).model == "a"
    assert chosen({"cost": 1.0}).model == "b"
    assert chosen({"latency": 1.0}, a=0.1, b=0.2).model == "a"
    equal = chosen(None, a=0.1, b=0.2)  # quality and latency for a, cost for b, load equal
    assert equal.scores == {"a": pytest.approx(0.625), "b": pytest.approx(0.375)}


def test_multi_factor_spreads_load_over_models() -> None:
    chooser = Chooser(AB, {"type": "multi_factor", "multi_factor": {"weights": {"load": 1.0}}})
    chooser.services.activity.enter("a")
    assert select(chooser).model == "b"


@pytest.mark.parametrize(("policy", "model", "status"), [("cheapest", "b", "fallback"), ("first", "a", "fallback"), ("fail", None, "failed")])
def test_limits_of_multi_factor_are_hard(policy: str, model: str | None, status: str) -> None:
    settings = {"slo": {"max_cost_per_1m": 5.0}, "weights": {"quality": 1.0}, "on_no_candidates": policy}
    refs = [{"model": "a", "weight": 0.9}, {"model": "b", "weight": 0.2}]
    assert select(Chooser(refs, {"type": "multi_factor", "multi_factor": settings}, prices=PRICES)).order == ("b",)
    chooser = Chooser(refs, {"type": "multi_factor", "multi_factor": {**settings, "slo": {"max_tpot_ms": 50.0}}}, prices=PRICES)
    observed(chooser, "tpot", a=0.1, b=0.2)
    found = select(chooser)
    assert (found.model, found.status) == (model, status)


def test_lexicographic_goes_on_to_the_next_factor_only_among_equals() -> None:
    refs = [{"model": "a", "weight": 1.0}, {"model": "b", "weight": 0.95}, {"model": "c", "weight": 0.0}]

    def chosen(tolerance: float) -> str | None:
        priorities = [{"factor": "quality", "tolerance": tolerance}, {"factor": "cost"}]
        objective = {"strategy": "lexicographic", "priorities": priorities}
        return select(Chooser(refs, {"type": "multi_factor", "multi_factor": {"objective": objective}}, prices=PRICES)).model

    assert (chosen(0.0), chosen(0.1)) == ("a", "b")


# -- embeddings

CARDS = [{"name": "a", "description": "writes code"}, {"name": "b", "description": "writes poems", "capabilities": ["rhymes"]}]
VECTORS = {"writes code": [1.0, 0.0], "writes poems\nCapabilities: rhymes": [0.0, 1.0], "a sonnet": [0.6, 0.8], "nothing": [-1.0, -1.0]}


def test_router_dc_takes_the_description_that_is_most_alike() -> None:
    chooser = Chooser(AB, {"type": "router_dc", "router_dc": {"temperature": 0.5}}, ScriptedCalls(VECTORS), modelCards=CARDS)
    found = select(chooser, "a sonnet")
    assert found.model == "b"
    assert found.scores["b"] == pytest.approx(1 / (1 + math.exp((0.6 - 0.8) / 0.5)), abs=1e-6)
    assert chooser.selector.deployments() == {"e"}
    assert f'llm_model_selection_confidence_sum{{method="router_dc"}} {found.scores["b"]}' in chooser.services.metrics.text().decode()
    select(chooser, "a sonnet")
    assert chooser.calls.asked[-1] == ("e", ["a sonnet"])  # descriptions are embedded once
    assert chooser.calls.left == 2


@pytest.mark.parametrize(
    ("text", "vectors", "word"),
    [("nothing", VECTORS, "below_min_similarity"), ("a sonnet", Unanswered("timeout"), "timeout"), ("  ", VECTORS, "no_text")],
)
def test_router_dc_keeps_the_declared_order_when_it_cannot_tell(text: str, vectors: Any, word: str) -> None:
    chooser = Chooser(AB, {"type": "router_dc"}, ScriptedCalls(vectors), modelCards=CARDS)
    found = select(chooser, text)
    assert (found.model, found.status) == ("a", "fallback")
    assert chooser.services.metrics.value("llm_model_selection_fallback", "router_dc", word) == 1


def test_hybrid_adds_its_parts_up() -> None:
    weights = {"experience_weight": 0.0, "router_dc_weight": 1.0, "automix_weight": 0.0, "cost_weight": 0.0, "quality_gap_threshold": 0.0}

    def chooser(**changes: float) -> Chooser:
        settings = {"type": "hybrid", "hybrid": {**weights, **changes}}
        return Chooser(AB, settings, ScriptedCalls(VECTORS), modelCards=CARDS, prices=PRICES)

    assert select(chooser(), "a sonnet").model == "b"
    assert select(chooser(router_dc_weight=0.0, cost_weight=1.0), "a sonnet").model == "b"
    experienced = chooser(router_dc_weight=0.0, experience_weight=1.0)
    experienced.services.activity.note("b", False)
    assert select(experienced, "a sonnet").model == "a"
    near = chooser(router_dc_weight=0.0, experience_weight=1.0, quality_gap_threshold=1.0)
    near.services.activity.note("b", False)
    assert select(near, "a sonnet").model == "b"  # within the gap, and cheaper


# -- a decision model

ASK = {"type": "decision", "decision": {"instructions": "Which one?", "candidates": {"a": "for code"}, "deployment": "judge", "timeout_ms": 500}}


def test_a_decision_model_is_asked_one_choice_and_its_probabilities_are_the_scores() -> None:
    answer = {"type": "choice", "choice": "b", "probabilities": {"a": 0.2, "b": 0.8}}
    chooser = Chooser(AB, ASK, ScriptedCalls(answer=answer), modelCards=CARDS)
    found = select(chooser, "write")
    assert (found.model, found.scores, found.method) == ("b", {"a": 0.2, "b": 0.8}, "decision")
    assert 'llm_model_selection_confidence_sum{method="decision"} 0.8' in chooser.services.metrics.text().decode()
    deployment, question, state, timeout = chooser.calls.asked[0]
    assert (deployment, state, timeout) == ("judge", "write", 0.5)
    assert question["choices"] == [{"key": "a", "description": "for code"}, {"key": "b", "description": "writes poems"}]


def test_without_an_answer_the_first_model_answers_or_nobody() -> None:
    chooser = Chooser(AB, ASK, ScriptedCalls(answer=Unanswered("timeout")))
    assert (select(chooser).model, select(chooser).status) == ("a", "fallback")
    strict = Chooser(AB, {**ASK, "on_error": "fail"}, ScriptedCalls(answer=Unanswered("timeout")))
    assert (select(strict).model, select(strict).status) == (None, "failed")


# -- the order of a cascade


@pytest.mark.parametrize(
    ("order", "expected"), [("size", ("b", "c", "a")), ("declared", ("a", "b", "c")), ("cost", ("b", "a", "c")), ("automix", ("b", "a", "c"))]
)
def test_a_cascade_begins_with_the_least(order: str, expected: tuple[str, ...]) -> None:
    cards = [{"name": "a", "param_size": "70B"}, {"name": "b", "param_size": "560M"}, {"name": "c", "param_size": "7b"}]
    chooser = Chooser(ABC, {"type": "confidence", "confidence": {"escalation_order": order}}, modelCards=cards, prices=PRICES)
    found = select(chooser)
    assert (found.order, found.status) == (expected, "execution_required")


def test_two_loras_of_one_model_are_two_candidates() -> None:
    cards = [{"name": "a", "loras": [{"name": "law", "description": "law"}, {"name": "med", "description": "medicine"}]}]
    refs = [{"model": "a", "lora_name": "law", "weight": 0.1}, {"model": "a", "lora_name": "med", "weight": 0.9}, {"model": "a"}]
    found = select(Chooser(refs, modelCards=cards))
    assert (found.model, found.lora, found.order) == ("a", "med", ("med", "law", "a"))
    answer = {"type": "choice", "choice": "law", "probabilities": {"law": 0.7, "med": 0.2, "a": 0.1}}
    chooser = Chooser(refs, {"type": "decision", "decision": {"instructions": "Which?"}}, ScriptedCalls(answer=answer), modelCards=cards)
    assert select(chooser).lora == "law"
    assert [each["key"] for each in chooser.calls.asked[0][1]["choices"]] == ["law", "med", "a"]


# -- which candidates may answer

LIMITS = [
    {"name": "a", "context_window_size": 100, "max_output_tokens": 50, "capabilities": ["function-calling"]},
    {"name": "b", "context_window_size": 1000, "modalities": {"input": ["text", "image"]}},
]


def limited(**requirements: str) -> Chooser:
    return Chooser(AB, modelCards=LIMITS, candidate_requirements=requirements)


def test_candidates_that_the_request_does_not_fit_are_left_out() -> None:
    chooser = limited(context="known_limits")
    assert select(chooser, "x" * 396).model == "a"  # 99 tokens
    assert select(chooser, "x" * 404).model == "b"
    assert select(chooser, "x" * 396, max_tokens=2).model == "b"
    assert select(chooser, "x", max_tokens=51).model == "b"
    asked = chooser.context("x" * 5, max_tokens=51)
    asyncio.run(chooser.selector.select(asked))
    assert asked.response_headers == {"x-vsr-effective-input-tokens": "2", "x-vsr-effective-max-output-tokens": "51"}
    with pytest.raises(ContextLengthError):
        select(chooser, "x" * 4004)
    with pytest.raises(RequestError, match="gives") as caught:
        select(Chooser(AB[:1], modelCards=LIMITS, candidate_requirements={"context": "known_limits"}), "x", max_tokens=51)
    assert caught.value.reason == "max_output_tokens_exceeded"


def test_candidates_that_declare_too_little_are_left_out() -> None:
    chooser = limited(capabilities="declared")
    image = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}]
    tool = {"type": "function", "function": {"name": "f"}}
    assert select(chooser).model == "a"
    assert select(chooser, tools=[tool]).model == "a"
    assert select(chooser, messages=image).order == ("b",)
    nobody = select(chooser, messages=image, tools=[tool])
    assert (nobody.model, nobody.status) == (None, "unavailable")
    assert select(Chooser(AB, modelCards=LIMITS), messages=image, tools=[tool]).model == "a"  # nothing is demanded


# -- defects and settings


def test_a_hand_off_goes_to_its_destination_and_to_nothing_unknown() -> None:
    found = select(Chooser(AB, decision={"action": {"type": "route", "destination": "b"}}))
    assert (found.model, found.method) == ("b", "action")
    with pytest.raises(ConfigError, match='hands requests off to "elsewhere"'):
        Chooser(AB, decision={"action": {"type": "route", "destination": "elsewhere"}})



def test_a_defect_of_an_algorithm_costs_the_choice_only(monkeypatch: pytest.MonkeyPatch) -> None:
    chooser = Chooser(AB, {"type": "multi_factor"})
    monkeypatch.setattr(chooser.services.latencies, "percentile", lambda *_: 1 / 0)
    found = select(chooser)
    assert (found.model, found.status) == ("a", "fallback")


def test_the_shared_method_is_that_of_decisions_that_name_none() -> None:
    shared = {"router": {"model_selection": {"method": "random"}}}
    assert select(Chooser(AB, global_=shared)).method == "random"
    assert select(Chooser(AB[:1], global_=shared)).method == "static"
    assert select(Chooser(AB, {"type": "static"}, global_=shared)).method == "static"


def test_a_trained_algorithm_without_its_files_is_refused() -> None:
    with pytest.raises(ConfigError, match="optimize train"):
        Chooser(AB, {"type": "knn"})


def test_with_too_few_candidates_left_there_is_no_choice() -> None:
    def left(least: int, max_tokens: int) -> Selection:
        requirements = {"context": "known_limits"}
        chooser = Chooser(AB, {"type": "static", "minimum_candidates": least}, modelCards=LIMITS, candidate_requirements=requirements)
        return select(chooser, "x", max_tokens=max_tokens)

    assert left(2, 1).status == "selected"
    assert (left(1, 51).model, left(1, 51).status) == ("b", "selected")
    few = left(2, 51)
    assert (few.model, few.status, few.reason) == (None, "unavailable", "1 of at least 2 candidates can answer the request")
