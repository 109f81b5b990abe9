"""Who answers a built-in signal."""

from __future__ import annotations

from typing import Any

import pytest

from headway.errors import ConfigError
from headway.router.signals.asking.answerer import decision_model, label_source
from headway.router.signals.asking.label_source import HeadSource, LabelSource, QuestionSource
from tests.router.scripted_calls import ScriptedCalls
from tests.router.signals.asking.observing import compiled, observe, recipe_of

QUESTION = {"type": "noul", "instructions": "?"}
HUB = {"provider": "model_runtime", "artifact": "owner/guard"}


def source(catalog: dict[str, Any] | None = None, **routing: Any) -> LabelSource:
    return label_source(recipe_of({}, catalog, **routing), "prompt_guard", QUESTION, full=True)


def bound(deployment: str, contract: str = "label_distribution.v1", **more: Any) -> dict[str, Any]:
    return {"prompt_guard": {"deployment": deployment, "contract": contract, **more}}


def test_the_recipe_comes_before_the_catalogue_and_that_before_the_decision_model() -> None:
    assert source() == QuestionSource("primary", QUESTION, True)
    assert source({"bindings": bound("shared")}) == HeadSource("shared")
    assert source({"bindings": bound("shared")}, model_bindings=bound("own", head="attacks")) == HeadSource("own", "attacks")


def test_a_binding_to_a_decision_model_asks_the_question_there() -> None:
    assert source({"bindings": bound("judge", "decision.v1")}) == QuestionSource("judge", QUESTION, True)


def test_models_that_system_names() -> None:
    for named in ("guard", "owner/guard"):
        assert source({"deployments": {"guard": HUB}, "system": {"prompt_guard": named}}) == HeadSource("guard")
    with pytest.raises(ConfigError, match="neither a deployment nor the artifact of one"):
        source({"system": {"prompt_guard": "somebody/else"}})


def test_a_contract_that_gives_no_labels() -> None:
    with pytest.raises(ConfigError, match="a binding does not match the model"):
        source({"bindings": bound("m", "embedding.v1")})


def test_the_decision_model_has_a_default() -> None:
    assert decision_model(recipe_of({})) == "primary"
    assert decision_model(recipe_of({}, {"system": {"decision_model": {"deployment": "judge"}}})) == "judge"


def test_a_question_reads_all_texts_as_one_state() -> None:
    calls = ScriptedCalls(decisions=lambda question, state: {"type": "noul", "noul": 0.1})
    recipe = recipe_of({"jailbreak": [{"name": "j", "threshold": 0.5, "include_history": True}]})
    observe(compiled("jailbreak", recipe), calls, "first", "second")
    assert [asked[1] for _, _, asked in calls.calls] == ["first\n\nyes\n\nsecond"]
