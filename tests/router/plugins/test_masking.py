"""Personal data never reaches a backend, or nothing does."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from headway.errors import HeadwayError
from headway.router.deployments.calls import Unanswered
from tests.router.plugins.rig import EMBEDDING, Rig, chat, run
from tests.router.scripted_calls import ScriptedCalls

BOUND = {"model_catalog": {"bindings": {"pii_classifier": {"deployment": "pii", "contract": "token_spans.v1"}}}}
PATTERNS = {"EMAIL_ADDRESS": r"\w+@\w+\.\w+", "PHONE_NUMBER": r"\d{7}", "PERSON": r"Alice|Böb"}


def spans(text: str) -> list[tuple[str, int, int, float]]:
    return [(label, match.start(), match.end(), 0.9) for label, pattern in PATTERNS.items() for match in re.finditer(pattern, text)]


def masked(tmp_path: Path, body: dict[str, Any], models: ScriptedCalls | None = None, settings: Any = BOUND, **configuration: Any) -> dict[str, Any]:
    async def work() -> dict[str, Any]:
        rig = Rig(tmp_path, ("masking", {"enabled": True, **configuration}), models=models or ScriptedCalls(spans=spans), settings=settings)
        await rig.ask(body)
        return rig.sent[0]

    return run(work)


def test_the_same_value_has_the_same_placeholder_everywhere(tmp_path: Path) -> None:
    body = {
        "model": "auto",
        "messages": [
            {"role": "system", "content": "Help Alice."},
            {"role": "user", "content": [{"type": "text", "text": "é Alice a@b.co c@d.co 🙂 a@b.co"}, {"type": "image_url", "image_url": {"url": "http://a@b.co/x"}}]},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "a@b.co", "function": {"name": "f", "arguments": '{"a@b.co": ["a@b.co", 1234567]}'}}]},
            {"role": "tool", "tool_call_id": "a@b.co", "content": '{"mail": "c@d.co"}'},
            {"role": "tool", "tool_call_id": "2", "content": '{"mail": "x"} c@d.co'},
        ],
    }
    found = masked(tmp_path, body)["messages"]
    assert found[0]["content"] == "Help [PERSON_0]."
    assert found[1]["content"][0]["text"] == "é [PERSON_0] [EMAIL_ADDRESS_0] [EMAIL_ADDRESS_1] 🙂 [EMAIL_ADDRESS_0]"
    assert found[1]["content"][1] == body["messages"][1]["content"][1]
    call = found[2]["tool_calls"][0]
    assert (call["id"], json.loads(call["function"]["arguments"])) == ("a@b.co", {"a@b.co": ["[EMAIL_ADDRESS_0]", 1234567]})
    assert json.loads(found[3]["content"]) == {"mail": "[EMAIL_ADDRESS_1]"}
    assert found[4]["content"] == '{"mail": "x"} [EMAIL_ADDRESS_1]'


def test_types_templates_and_thresholds(tmp_path: Path) -> None:
    text = "Alice a@b.co 1234567"
    assert masked(tmp_path, chat(text), entity_types=["PHONE_NUMBER"]) == chat("Alice a@b.co [PHONE_NUMBER_0]")
    assert masked(tmp_path, chat(text), placeholders={"PERSON": "<{index}>"}) == chat("<0> [EMAIL_ADDRESS_0] [PHONE_NUMBER_0]")
    assert masked(tmp_path, chat(text), threshold=0.95) == chat(text)


def test_of_spans_that_overlap_no_letter_stays(tmp_path: Path) -> None:
    models = ScriptedCalls(spans=lambda text: [("A", 2, 6, 0.5), ("B", 4, 9, 0.9), ("A", 11, 12, 0.9), ("C", -3, 1, 0.9), ("C", 90, 99, 0.9)])
    assert masked(tmp_path, chat("0123456789abcd"), models) == chat("[C_0]1[B_0]9a[A_0]cd")


def test_a_decision_model_marks_spans_where_nothing_is_bound(tmp_path: Path) -> None:
    found = {"type": "span", "spans": [{"label": "PERSON", "start": 3, "end": 8, "probability": 0.8}]}
    models = ScriptedCalls(decisions=lambda question, state: found)
    assert masked(tmp_path, chat("hi Alice"), models, settings=EMBEDDING) == chat("hi [PERSON_0]")
    assert models.calls[0][1] == "primary"
    assert models.calls[0][2][0]["type"] == "span"


@pytest.mark.parametrize("models", [ScriptedCalls(spans=lambda text: Unanswered("timeout")), ScriptedCalls(spans=spans, read_all=False)])
def test_what_cannot_be_searched_is_not_sent(tmp_path: Path, models: ScriptedCalls) -> None:
    with pytest.raises(HeadwayError) as caught:
        masked(tmp_path, chat("hi Alice"), models)
    assert caught.value.reason == "masking_unavailable"


def test_documents_and_instructions_are_masked_too(tmp_path: Path) -> None:
    async def work() -> None:
        models = ScriptedCalls(spans=spans)
        rig = Rig(tmp_path, ("masking", {"enabled": True}), ("system_prompt", {"system_prompt": "Ask Alice."}), models=models, settings=BOUND)
        await rig.ask("hi")
        assert rig.sent[0]["messages"][0]["content"] == "Ask [PERSON_0]."
        assert models.calls[-1][0] == "leave"

    run(work)
