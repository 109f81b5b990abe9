"""E15: what a change of the configuration does to requests, as each of them sees it. (Ways of writing the file under load: tests/e2e/test_router_reload.py.)"""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.cases.router_case import any_of, attached, decision, document, runtime
from tests.e2e.router_process import RunningRouter, backend, started_router
from tests.router.deployments.fake_runtime import answer_questions, noul_card
from tests.router.upstream.scripted_backend import answers

DEBUG = {"x-vsr-debug": "true"}
HARM = {"name": "harm", "question": {"type": "noul", "instructions": "Is it harmful?"}}


def version_of(name: str, endpoint: str, judge: Any) -> dict[str, Any]:
    """A whole configuration in which decision, model, prompt and deployment all bear the same name."""
    prompt = {"type": "system_prompt", "configuration": {"enabled": True, "system_prompt": f"prompt of {name}"}}
    routing = {
        "signals": {"systemone": [{**HARM, "deployment": name}]},
        "decisions": [decision(name, any_of({"type": "systemone", "name": "harm"}), model=name, plugins=[prompt])],
    }
    catalog = {"deployments": {name: judge}, "system": {"decision_model": {"deployment": name}}}
    return document({name: endpoint}, routing, **{"global": {"model_catalog": catalog}})


def put(path: Path, document: dict[str, Any]) -> None:
    beside = path.with_name("beside.yaml")
    beside.write_text(yaml.safe_dump(document, sort_keys=False))
    beside.replace(path)


@pytest.mark.long
def test_e15_each_request_sees_one_whole_configuration(tmp_path: Path) -> None:
    with backend(answers()) as one, runtime(noul_card("judge"), decisions=answer_questions) as judge:
        versions = {name: version_of(name, one.endpoint, attached(judge, "judge")) for name in ("first", "second")}
        with started_router(tmp_path, versions["first"]) as router:
            router.until(lambda: router.preview("x").json()["signal_errors"] == {})
            seen: dict[int, set[str]] = {}
            wrong: list[str] = []
            stop = threading.Event()

            def work() -> None:
                with httpx.Client(trust_env=False, timeout=30) as client:
                    while not stop.wait(0.03):
                        body = {"model": "auto", "messages": [{"role": "user", "content": "x"}]}
                        answer = client.post(f"{router.url}/v1/chat/completions", json=body, headers=DEBUG)
                        told = json.loads(answer.headers.get("x-vsr-trace", "{}"))
                        names = {told.get("decision"), told.get("model"), answer.headers.get("x-vsr-selected-model")}
                        if answer.status_code != 200 or len(names) != 1 or told["errors"]:
                            wrong.append(f"{answer.status_code} {told}")
                        else:
                            seen.setdefault(told["generation"], set()).add(told["decision"])

            threads = [threading.Thread(target=work) for _ in range(3)]
            for thread in threads:
                thread.start()
            for turn in range(10):
                put(router.config, versions["second" if turn % 2 == 0 else "first"])
                router.until(lambda turn=turn: router.metric("vsr_config_generation") == turn + 2)  # type: ignore[misc]
            stop.set()
            for thread in threads:
                thread.join(30)
            assert wrong == []
            assert {number: names for number, names in seen.items() if len(names) != 1} == {}
            for asked in one.asked:
                assert asked.body["messages"][0]["content"] == f"prompt of {asked.body['model']}"
            router.until(lambda: router.metric("vsr_config_retired_generations") == 0)


@pytest.mark.long
def test_e15_a_new_model_that_fails_to_load_changes_nothing(tmp_path: Path) -> None:
    with backend(answers()) as one, runtime(noul_card("judge"), decisions=answer_questions) as judge:
        first = version_of("first", one.endpoint, attached(judge, "judge"))
        second = version_of("second", one.endpoint, {"provider": "model_runtime", "artifact": str(tmp_path / "no-such-model"), "device": "cpu", "public_name": "x"})
        with started_router(tmp_path, first) as router:
            router.until(lambda: router.chat("x").headers.get("x-vsr-selected-decision") == "first")
            put(router.config, second)
            router.until(lambda: router.metric("vsr_config_last_reload_successful") == 0, seconds=60)
            status = router.get("/api/v1/config/hash").json()
            assert status["activation_status"] == "failed"
            assert "second" in status["error"]
            assert router.get("/ready").status_code == 200
            assert router.chat("x").headers["x-vsr-selected-decision"] == "first"
            put(router.config, first)
            router.until(lambda: router.get("/api/v1/config/hash").json()["activation_status"] == "active")


def test_e15_a_file_that_is_named_is_read_again_when_it_changes(tmp_path: Path) -> None:
    """The list of tools; the configuration stays as it is. (Certificates: tests/e2e/test_router_tls.py.)"""
    tools = tmp_path / "tools.json"

    def write(name: str) -> None:
        function = {"name": name, "description": "Tells the weather.", "parameters": {"type": "object"}}
        tools.write_text(json.dumps([{"tool": {"type": "function", "function": function}, "description": "Tells the weather."}]))

    def offered(router: RunningRouter) -> list[str]:
        answer = router.chat("tell me the weather")
        assert answer.status_code == 200, answer.text
        return [tool["function"]["name"] for tool in one.asked[-1].body.get("tools", ())]

    write("old_weather")
    plugin = {"type": "tool_selection", "configuration": {"enabled": True, "mode": "add", "tools_db_path": str(tools), "top_k": 1}}
    with backend(answers()) as one, started_router(tmp_path / "r", document({"m": one.endpoint}, {"decisions": [decision("all", plugins=[plugin])]})) as router:
        assert offered(router) == ["old_weather"]
        write("new_weather")
        router.until(lambda: offered(router) == ["new_weather"])
        tools.write_text("[")  # half of it: what serves stays
        router.until(lambda: router.metric("vsr_config_last_reload_successful") == 0)
        assert offered(router) == ["new_weather"]
