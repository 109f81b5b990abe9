"""context_compression: what of a request is shortened, and what never."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from headway.errors import ConfigError, HeadwayError
from headway.router.deployments.calls import Unanswered
from headway.router.plugins.compression.extraction import token_estimate
from tests.router.plugins.rig import Rig, run
from tests.router.scripted_calls import ScriptedCalls

LONG = "".join(f"Row {number}: nothing of interest stands in this row of the log file.\n" for number in range(400))
NEEDLE = LONG[:14000] + "ERROR disk sda1 is full on host seven.\n" + LONG[14000:]
QUESTION = "which disk is full"


def conversation(*more: dict[str, Any], result: Any = NEEDLE) -> dict[str, Any]:
    call = {"id": "c", "type": "function", "function": {"name": "read_log", "arguments": '{"host": "seven"}'}}
    messages = [
        {"role": "system", "content": LONG},
        *more,
        {"role": "user", "content": QUESTION},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": result},
    ]
    return {"model": "auto", "messages": messages}


def sent(tmp_path: Path, body: dict[str, Any], window: int | None = None, headers: Any = None, models: Any = None, **configuration: Any) -> Any:
    async def work() -> Any:
        routing = {"modelCards": [{"name": "m", **({"context_window_size": window} if window else {})}]}
        settings = {"model_catalog": {"deployments": {"emb": {"provider": "model_runtime", "artifact": "/m", "public_name": "emb"}}}}
        rig = Rig(tmp_path, ("context_compression", {"enabled": True, **configuration}), routing=routing, settings=settings, models=models)
        await rig.ask(body, headers=headers)
        return rig.sent[0]

    return run(work)


def test_results_of_tools_come_down_to_their_target(tmp_path: Path) -> None:
    body = conversation()
    before = copy.deepcopy(body)
    found = sent(tmp_path, body)
    assert body == before
    assert found["messages"][:-1] == body["messages"][:-1]
    result = found["messages"][-1]["content"]
    assert "ERROR disk sda1 is full" in result
    assert token_estimate(result) <= 1100 < token_estimate(NEEDLE)


def test_below_the_trigger_nothing_happens(tmp_path: Path) -> None:
    body = conversation()
    assert sent(tmp_path, body, window=100_000) == body
    assert sent(tmp_path, body, window=100_000, mode="always") != body
    assert sent(tmp_path, body, window=9_000) != body
    assert sent(tmp_path, body, budget={"trigger_tokens": 50_000}) == body


def test_json_stays_json_and_images_stay(tmp_path: Path) -> None:
    found = sent(tmp_path, conversation(result=json.dumps({"id": 7, "log": NEEDLE, "tags": ["a", None, True]})))
    value = json.loads(found["messages"][-1]["content"])
    assert (value["id"], value["tags"]) == (7, ["a", None, True])
    assert "ERROR disk" in value["log"]
    assert token_estimate(value["log"]) < 1200
    image = {"type": "image_url", "image_url": {"url": "data:x"}}
    parts = sent(tmp_path, conversation(result=[{"type": "text", "text": NEEDLE}, image]))["messages"][-1]["content"]
    assert parts[1] == image
    assert "ERROR disk" in parts[0]["text"]


HISTORY = [{"role": "user", "content": LONG}, {"role": "assistant", "content": LONG}, {"role": "user", "content": "go on"}, {"role": "assistant", "content": LONG}]


def test_history_is_shortened_only_where_that_is_asked_for(tmp_path: Path) -> None:
    body = conversation(*HISTORY)
    assert sent(tmp_path, body)["messages"][1:5] == HISTORY
    found = sent(tmp_path, body, targets={"history": {"mode": "extractive", "min_tokens": 500, "target_tokens": 200}})["messages"]
    assert all(token_estimate(found[at]["content"]) < 300 for at in (1, 2))
    assert found[3:5] == HISTORY[2:]  # the latest assistant turn stays
    assert found[0]["content"] == LONG


def test_documents_have_their_own_target(tmp_path: Path) -> None:
    body = conversation()
    body["messages"][-1]["tool_call_id"] = "rag_1"
    assert sent(tmp_path, body)["messages"][-1]["content"] == NEEDLE
    found = sent(tmp_path, body, targets={"rag": {"mode": "extractive"}})
    assert found["messages"][-1]["content"] != NEEDLE


def test_the_live_turn_is_cut_only_on_request_and_only_as_much_as_needed(tmp_path: Path) -> None:
    body = {"model": "auto", "messages": [{"role": "user", "content": "START " + LONG + " END"}]}
    assert sent(tmp_path, body, window=4000) == body
    cut = sent(tmp_path, body, window=4000, targets={"current_user": {"mode": "truncate"}})["messages"][0]["content"]
    assert cut.startswith("START")
    assert cut.endswith("END")
    assert 2000 < token_estimate(cut) < 2500


def test_fail_closed_refuses_what_does_not_fit(tmp_path: Path) -> None:
    body = {"model": "auto", "messages": [{"role": "user", "content": LONG}]}
    assert sent(tmp_path, body, window=4000) == body
    with pytest.raises(HeadwayError) as caught:
        sent(tmp_path, body, window=4000, failure_mode="fail_closed")
    assert caught.value.reason == "context_compression_failed"


CONTROLS = {"request_controls": {"enabled": True, "allowed": ["bypass", "target"], "max_target_tokens": 500}}


def test_what_clients_may_say(tmp_path: Path) -> None:
    body = conversation()

    def size(said: str, **more: Any) -> int:
        return token_estimate(sent(tmp_path, body, headers={"x-vsr-compression-control": said}, **more)["messages"][-1]["content"])

    assert size("bypass", **CONTROLS) == token_estimate(NEEDLE)
    assert size("target=200", **CONTROLS) < 300
    assert 350 < size("target=9000", **CONTROLS) < 600
    assert size("bypass") < 1200


def test_scoring_by_vectors(tmp_path: Path) -> None:
    scoring = {"scoring": {"method": "embedding", "embedding_model_ref": "emb"}}
    models = ScriptedCalls(vectors=lambda text: [1.0, 0.0] if "sda1" in text or QUESTION in text else [0.0, 1.0])
    assert "sda1" in sent(tmp_path, conversation(), models=models, **scoring)["messages"][-1]["content"]
    away = ScriptedCalls(vectors=lambda _: Unanswered("timeout"))
    assert sent(tmp_path, conversation(), models=away, **scoring) == conversation()
    hybrid = {"scoring": {"method": "hybrid", "embedding_model_ref": "emb"}}
    assert "sda1" in sent(tmp_path, conversation(), models=away, **hybrid)["messages"][-1]["content"]
    with pytest.raises(HeadwayError):
        sent(tmp_path, conversation(), models=away, failure_mode="fail_closed", **scoring)
    with pytest.raises(ConfigError, match="no deployment"):
        sent(tmp_path, conversation(), scoring={"method": "hybrid", "embedding_model_ref": "nope"})
