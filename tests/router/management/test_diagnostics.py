"""What single signals say about a text, and vectors, over the management address."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headway.router.deployments.calls import Unanswered
from headway.router.signals.extraction import compile_extraction
from tests.router.management.test_plugin_endpoints import Management
from tests.router.plugins.rig import Rig, run
from tests.router.scripted_calls import ScriptedCalls

BOUND = {
    "model_catalog": {
        "bindings": {
            "embedding": {"deployment": "emb", "contract": "embedding.v1"},
            **{name: {"deployment": "heads", "contract": "label_distribution.v1"}
               for name in ("prompt_guard", "domain_classifier", "fact_check_classifier", "feedback_detector")},
            "pii_classifier": {"deployment": "spans", "contract": "token_spans.v1"},
        },
        "modules": {"classifier": {"pii": {"threshold": 0.5}}},
    }
}  # fmt: skip
SIGNALS = {
    "domains": [{"name": "law"}, {"name": "math"}],
    "jailbreak": [{"name": "guard", "threshold": 0.5}],
    "fact_check": [{"name": "needs_fact_check"}],
    "user_feedbacks": [{"name": "wrong_answer"}, {"name": "satisfied"}],
}
USED = [("domain", "law"), ("domain", "math"), ("jailbreak", "guard"), ("fact_check", "needs_fact_check"), ("user_feedback", "wrong_answer"), ("user_feedback", "satisfied")]
RULES = {"operator": "OR", "conditions": [{"type": type, "name": name} for type, name in USED]}
HEADS = {  # the first word of a text -> what a head says of it; every signal is bound to the same one
    "sue": {"law": 0.8, "math": 0.2},
    "evil": {"jailbreak": 0.9, "benign": 0.1},
    "fine": {"jailbreak": 0.1, "benign": 0.9},
    "date": {"FACT_CHECK_NEEDED": 0.97, "NO_FACT_CHECK_NEEDED": 0.03},
    "poem": {"FACT_CHECK_NEEDED": 0.2, "NO_FACT_CHECK_NEEDED": 0.8},
    "no": {"SAT": 0.1, "WRONG_ANSWER": 0.9},
}
MAIL = "mail a@b.c now"


def asked(tmp_path: Path, path: str, body: dict[str, Any], status: int = 200, models: ScriptedCalls | None = None, signals: Any = SIGNALS) -> Any:
    usual = ScriptedCalls(
        heads=lambda text: HEADS.get(text.split()[0], HEADS["sue"]),
        spans=lambda text: [("EMAIL", 5, 10, 0.9), ("NAME", 0, 4, 0.2)] if text == MAIL else [],
        vectors=lambda given: [float(len(str(given))), 1.0],
    )

    async def work() -> Any:
        routing = {"signals": signals} if signals else {}
        rig = Rig(tmp_path, models=models or usual, settings=BOUND, routing=routing, decision={"rules": RULES} if signals else None)
        rig.observe = compile_extraction(rig.generation.recipes["default"].recipe, rig).observe  # type: ignore[method-assign, arg-type]
        return await Management(rig)("POST", f"diagnostics/{path}", status, json=body)

    return run(work)


def test_the_domain_of_a_text(tmp_path: Path) -> None:
    told = asked(tmp_path, "classify/intent", {"text": "sue them"})
    assert (told["classification"]["category"], told["classification"]["confidence"]) == ("law", 0.8)
    assert told["matched_signals"]["domains"] == ["law"]
    assert told["recommended_model"] == "m"


def test_personal_data(tmp_path: Path) -> None:
    told = asked(tmp_path, "classify/pii", {"text": MAIL})
    (entity,) = told["entities"]
    assert (entity["type"], entity["value"], entity["start_position"], entity["end_position"]) == ("EMAIL", "a@b.c", 5, 10)
    assert (told["has_pii"], told["masked_text"], told["security_recommendation"]) == (True, "mail [EMAIL] now", "block")
    clean = asked(tmp_path, "classify/pii", {"text": "nothing"})
    assert (clean["has_pii"], clean["masked_text"], clean["security_recommendation"]) == (False, "nothing", "allow")
    half = asked(tmp_path, "classify/pii", {"text": "long"}, models=ScriptedCalls(spans=lambda text: [], read_all=False))
    assert (half["has_pii"], half["read_all"], half["security_recommendation"]) == (False, False, "block")
    assert asked(tmp_path, "classify/pii", {"text": "x"}, 504, ScriptedCalls(spans=lambda text: Unanswered("timeout")))["error"]["code"] == "CLASSIFICATION_ERROR"


def test_attacks(tmp_path: Path) -> None:
    told = asked(tmp_path, "classify/security", {"text": "evil plan"})
    assert (told["is_jailbreak"], told["risk_score"], told["recommendation"], told["detection_types"]) == (True, 0.9, "block", ["jailbreak"])
    told = asked(tmp_path, "classify/security", {"text": "fine weather"})
    assert (told["is_jailbreak"], told["recommendation"], told["signal_errors"]) == (False, "allow", {})
    assert told["confidence"] == pytest.approx(0.9)


def test_a_guard_that_does_not_answer_invents_no_confidence(tmp_path: Path) -> None:
    away = ScriptedCalls(heads=lambda text: Unanswered("timeout"))
    lax = {**SIGNALS, "jailbreak": [{"name": "guard", "threshold": 0.5, "on_unknown": "no_match"}]}
    told = asked(tmp_path, "classify/security", {"text": "x"}, models=away, signals=lax)
    assert (told["is_jailbreak"], told["confidence"], told["recommendation"]) == (False, 0.0, "review")
    assert list(told["signal_errors"]) == ["jailbreak:guard"]
    assert asked(tmp_path, "classify/fact-check", {"text": "x"}, models=away)["label"] == "unknown"


def test_facts_and_feedback(tmp_path: Path) -> None:
    needed = asked(tmp_path, "classify/fact-check", {"text": "date of birth"})
    assert (needed["needs_fact_check"], needed["label"], needed["confidence"]) == (True, "fact_check_needed", 0.97)
    assert asked(tmp_path, "classify/fact-check", {"text": "poem"})["label"] == "no_fact_check_needed"
    told = asked(tmp_path, "classify/user-feedback", {"text": "no"})
    assert (told["feedback_type"], told["confidence"]) == ("wrong_answer", 0.9)


def test_several_at_once(tmp_path: Path) -> None:
    told = asked(tmp_path, "classify/combined", {"text": "sue them"})
    assert (told["intent"]["classification"]["category"], told["pii"]["has_pii"], told["security"]["is_jailbreak"]) == ("law", False, True)  # a guard with foreign labels fails closed
    batch = asked(tmp_path, "classify/batch", {"texts": ["sue a", "sue b"], "task_type": "intent"})
    assert (batch["total_count"], batch["statistics"]["category_distribution"]) == (2, {"law": 2})
    assert asked(tmp_path, "classify/batch", {"texts": ["a"], "task_type": "mood"}, 400)["error"]["code"] == "INVALID_TASK_TYPE"
    assert asked(tmp_path, "classify/batch", {"texts": []}, 400)["error"]["code"] == "INVALID_INPUT"


def test_what_is_not_configured_says_so(tmp_path: Path) -> None:
    assert asked(tmp_path, "classify/security", {"text": "x"}, 503, signals=None)["error"]["code"] == "SERVICE_UNAVAILABLE"
    assert asked(tmp_path, "classify/mood", {"text": "x"}, 404)["error"]["code"] == "NOT_FOUND"
    assert asked(tmp_path, "nli", {"premise": "a", "hypothesis": "b"}, 501)["error"]["code"] == "NOT_SUPPORTED"


def test_vectors_and_likeness(tmp_path: Path) -> None:
    told = asked(tmp_path, "embeddings", {"texts": ["ab"], "images": ["data:,"], "dimension": 2})
    assert [each["embedding"] for each in told["embeddings"]] == [[2.0, 1.0], [float(len(str({"image": "data:,"}))), 1.0]]
    assert (told["total_count"], told["embeddings"][0]["model_used"], told["representation"]) == (2, "emb", "model-1")
    assert "have 2" in asked(tmp_path, "embeddings", {"texts": ["a"], "dimension": 3}, 400)["error"]["message"]
    assert asked(tmp_path, "similarity", {"text1": "ab", "text2": "ab"})["similarity"] == pytest.approx(1.0)
    batch = asked(tmp_path, "similarity/batch", {"query": "a", "candidates": ["aaaaaa", "b", "cc"], "top_k": 2})
    assert [each["index"] for each in batch["matches"]] == [1, 2]
    assert "unknown fields" in asked(tmp_path, "similarity", {"text1": "a", "text2": "b", "texts": []}, 400)["error"]["message"]
