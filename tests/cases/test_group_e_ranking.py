"""E03: a signal without a score never outranks one that has a score."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.cases.router_case import all_of, any_of, attached, decision, document, runtime
from tests.e2e.router_process import RunningRouter, backend, started_router
from tests.router.deployments.fake_runtime import Body, noul_card
from tests.router.upstream.scripted_backend import answers

SHARES = {"topic": 0.88, "first": 0.90, "second": 0.90, "guard": 0.05, "weak": 0.70}


async def say(body: Body) -> Any:
    """Each question by its first word."""
    parts = list(body["states"].values()) if "states" in body else [body]
    told = {
        name: {"type": "noul", "noul": next(share for word, share in SHARES.items() if question["instructions"].startswith(word))}
        for part in parts
        for name, question in part["questions"].items()
    }
    return {"model": body["model"], "answers": told, "usage": {"input_tokens": 3, "output_tokens": 0}}


def routing(strategy: str) -> dict[str, Any]:
    def question(name: str) -> dict[str, Any]:
        return {"name": name, "question": {"type": "noul", "instructions": f"{name}?"}}

    def asked(name: str) -> dict[str, Any]:
        return {"type": "systemone", "name": name}

    keyword = {"type": "keyword", "name": "code_words"}
    signals = {"keywords": [{"name": "code_words", "operator": "OR", "keywords": ["function"]}], "systemone": [question(name) for name in SHARES]}
    return {
        "strategy": strategy,
        "signals": signals,
        "decisions": [
            decision("legal", all_of(asked("topic"), asked("first"), asked("second")), priority=260),
            decision("code", all_of(keyword, {"operator": "NOT", "conditions": [asked("guard")]}), priority=250),
            decision("either", any_of(asked("weak"), keyword), priority=10),
        ],
    }


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    with backend(answers()) as one, runtime(noul_card("judge"), decisions=say) as judge:
        deployments = {"primary": attached(judge, "judge")}
        recipes = [{"name": name, "routing": routing(name)} for name in ("priority", "confidence")]
        names = [{"model_names": [f"case/{name}"], "recipe": name} for name in ("priority", "confidence")]
        whole = document({"m": one.endpoint}, {}, recipes=recipes, entrypoints=names, **{"global": {"model_catalog": {"deployments": deployments}}})
        with started_router(tmp_path_factory.mktemp("ranking"), whole) as found:
            found.until(lambda: found.preview("x", model="case/priority").json()["signal_errors"] == {})
            yield found


@pytest.mark.parametrize("strategy", ["priority", "confidence"])
@pytest.mark.parametrize("text", ["Is this contract valid?", "Is this function valid in a contract?"])
def test_e03_the_scored_route_wins(router: RunningRouter, strategy: str, text: str) -> None:
    answer = router.chat(text, model=f"case/{strategy}")
    assert answer.headers["x-vsr-selected-decision"] == "legal"
    told = router.preview(text, trace=True, model=f"case/{strategy}").json()
    assert told["decision_result"]["decision_name"] == "legal"
    assert told["decision_result"]["matched_rules"] == ["systemone:topic", "systemone:first", "systemone:second"]
    order = ["legal", "code", "either"] if "function" in text else ["legal", "either"]
    assert told["ranking"]["order"] == order
    # Ranked by confidence only while every competitor has a comparable score: the keyword route has none.
    assert told["ranking"]["by"] == ("confidence" if strategy == "confidence" and "function" not in text else "priority")


def test_e03_a_keyword_never_raises_or_erases_evidence(router: RunningRouter) -> None:
    scores = []
    for text in ("plain", "plain function"):
        shown = router.preview(text, trace=True, model="case/confidence").json()["eval_trace"]
        (either,) = (each for each in shown if each["decision_name"] == "either")
        assert either["matched"]
        scores.append(either["root_trace"].get("score"))
    assert scores == [pytest.approx(0.70), pytest.approx(0.70)]
