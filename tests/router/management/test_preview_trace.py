"""The trace of a preview: which words were found where, what a policy decided, what put the decisions in order."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

from headway.router.decisions.engine import compile_decisions
from headway.router.management.preview_report import preview_report
from headway.router.observation import Observation, Observations
from headway.router.request.context import RequestContext
from headway.router.request.deadline import Deadline
from headway.router.request.identity import Identity
from headway.router.signals.extraction import compile_extraction
from headway.router.truth import Truth
from tests.router.routed import NoStages, recipe

TEXT = "Explain C++ move semantics"


def reported(routing: dict[str, Any], *more: Observation) -> dict[str, Any]:
    built = recipe(routing)
    body = {"model": "vllm-sr/auto", "messages": [{"role": "user", "content": TEXT}]}
    context = RequestContext(SimpleNamespace(number=1), body, {}, Identity(), Deadline.after(5), "r")  # type: ignore[arg-type]
    found: Observations = asyncio.run(compile_extraction(built, NoStages()).observe(context.view, context.deadline))
    found.add(more)
    context.observations, context.decision = found, compile_decisions(built).decide(found)
    return preview_report(context, TEXT, True)


def test_words_and_their_places() -> None:
    keywords = [{"name": "code", "operator": "OR", "keywords": ["C++", "move semantics", "rust"]}]
    report = reported({"signals": {"keywords": keywords}, "decisions": [{"name": "code", "rules": {"type": "keyword", "name": "code"}}]})
    (root,) = [each["root_trace"] for each in report["eval_trace"]]
    assert (root["node_type"], root["truth"], root["signal_type"], root["signal_name"]) == ("leaf", "true", "keyword", "code")
    places = root["evidence"]["keywords"]
    assert [TEXT[each["start"] : each["end"]] for each in places] == ["C++", "move semantics"]
    assert report["signal_confidences"] == {"keyword:code": 0.5 + 0.5 * 2 / 3}


def test_scores_policies_and_the_order() -> None:
    routing = {
        "signals": {"domains": [{"name": "law"}], "keywords": [{"name": "code", "operator": "OR", "keywords": ["C++"]}]},
        "decisions": [
            {"name": "legal", "priority": 2, "rules": {"type": "domain", "name": "law"}},
            {"name": "code", "priority": 1, "rules": {"operator": "NOT", "conditions": [{"type": "keyword", "name": "gone"}]}},
        ],
    }
    routing["signals"]["keywords"].append({"name": "gone", "operator": "OR", "keywords": ["zz"]})  # type: ignore[attr-defined]
    built = recipe(routing)
    decided = compile_decisions(built).decide(
        Observations([Observation("domain", "law", Truth.TRUE, 0.8), Observation("keyword", "gone", Truth.UNKNOWN, reason="keyword_evaluation_failed")])
    )
    context = RequestContext(SimpleNamespace(number=1), {"messages": []}, {}, Identity(), Deadline.after(5), "r")  # type: ignore[arg-type]
    context.decision = decided
    report = preview_report(context, "", True)
    legal, code = (each["root_trace"] for each in report["eval_trace"])
    assert (legal["score"], legal["scale"]) == (0.8, "probability")
    assert (code["truth"], code["assumed"]) == ("true", True)
    assert code["children"][0]["reason"] == "keyword_evaluation_failed"
    assert report["ranking"] == {"order": ["legal", "code"], "by": "priority"}
