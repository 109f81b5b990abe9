"""What operators can switch on: middleware, timings, load reports, logs of answers, routes that tell about the server."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headway import __version__
from headway.cli.serve_config import serve_config
from headway.errors import ConfigError
from headway.telemetry.logs import configure_logging
from tests.cases.case_server import CaseServer, case_server
from tests.cases.scripted_model import ScriptedModel, scripted_engine, scripted_tokenizer
from tests.server.api import CHAT, COMPLETIONS, USER, Api, error, frames, ok
from tests.server.scripted_engine import ScriptedEngine, Status

Make = Callable[..., Api]
OWN = "tests.server.own_middleware"


# ---- middleware ----------------------------------------------------------------------------------------------------


def test_middleware_of_ones_own_sees_every_request(make_api: Make) -> None:
    api = make_api(middleware=(f"{OWN}.Stamped", f"{OWN}.shout"), api_key=("k",))
    refused = api.post(COMPLETIONS, {"prompt": "x"})
    error(refused, 401)
    assert (refused.headers["x-stamp"], refused.headers["x-shout"]) == ("class", "POST")
    assert api.get("/health").headers["x-stamp"] == "class"


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("nodots", "is no import path"),
        ("no.such.module.Name", "cannot be imported: ModuleNotFoundError"),
        (f"{OWN}.Missing", "cannot be imported: AttributeError"),
        (f"{OWN}.NOTHING", "neither a class nor an async function, but a int"),
    ],
)
def test_middleware_that_is_none(make_api: Make, path: str, said: str) -> None:
    with pytest.raises(ConfigError, match="--middleware") as found:
        make_api(middleware=(path,))
    assert said in found.value.message
    assert found.value.reason == "middleware_invalid"


# ---- /invocations --------------------------------------------------------------------------------------------------


def test_invocations_go_by_the_shape_of_the_body(api: Api) -> None:
    assert ok(api.post("/invocations", {"prompt": "x"}))["object"] == "text_completion"
    assert ok(api.post("/invocations", {"messages": USER}))["object"] == "chat.completion"
    streamed = api.post("/invocations", {"messages": USER, "stream": True})
    assert frames(streamed.text)[0]["object"] == "chat.completion.chunk"
    for body, key in (({"input": "x"}, "data"), ({"query": "x", "documents": ["y"]}, "results"), ({"text_1": "x", "text_2": "y"}, "data")):
        assert key in ok(api.post("/invocations", body))
    error(api.post("/invocations", {"colour": "x"}), 400, "body_invalid")
    error(api.post("/invocations", {"prompt": 7}), 400, "body_invalid")
    error(api.call("POST", "/invocations", content=b"[]", headers={"content-type": "application/json"}), 400, "body_invalid")


# ---- load reports --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [COMPLETIONS, CHAT])
@pytest.mark.parametrize("stream", [False, True])
def test_load_in_a_header_when_asked_for(api: Api, path: str, stream: bool) -> None:
    api.engine.status = Status("ready", waiting=3, kv_usage=0.25)
    body = {"prompt": "x", "messages": USER, "stream": stream}
    head = {"endpoint-load-metrics-format": "JSON"}
    found = api.post(path, body, headers=head).headers["endpoint-load-metrics"]
    assert found.startswith("JSON ")
    assert json.loads(found[5:]) == {"named_metrics": {"kv_cache_usage_perc": 0.25, "num_requests_waiting": 3.0}}
    found = api.post(path, body, headers={"endpoint-load-metrics-format": "text"}).headers["endpoint-load-metrics"]
    assert found == "TEXT named_metrics.kv_cache_usage_perc=0.25, named_metrics.num_requests_waiting=3"
    for other in ({}, {"endpoint-load-metrics-format": "xml"}):
        assert "endpoint-load-metrics" not in api.post(path, body, headers=other).headers


# ---- routes about the server ---------------------------------------------------------------------------------------


def test_tokenizer_info_is_opt_in(api: Api, make_api: Make) -> None:
    error(api.get("/tokenizer_info"), 404, "route_not_found")
    assert "/tokenizer_info" not in ok(api.get("/openapi.json"))["paths"]
    found = ok(make_api(enable_tokenizer_info_endpoint=True, chat_template="{{ messages }}").get("/tokenizer_info"))
    assert (found["vocab_size"], found["eos_token"], found["chat_template"]) == (258, "<eos>", "{{ messages }}")


def test_server_info_is_for_developers_and_shows_no_key(api: Api, make_api: Make) -> None:
    error(api.get("/server_info"), 404, "route_not_found")
    guarded = make_api(server_dev_mode=True, api_key=("sesame-4711",))
    error(guarded.get("/server_info"), 401)
    response = guarded.get("/server_info", headers={"authorization": "Bearer sesame-4711"})
    found = ok(response)
    assert found["version"] == __version__
    assert (found["vllm_config"]["model"], found["server"]["api_key"]) == ("tiny", "1 key(s)")
    assert "sesame" not in response.text
    config = serve_config(["tiny"], {"VLLM_SERVER_DEV_MODE": "1"}, pytest.fail)
    assert config.server.server_dev_mode
    assert not serve_config(["tiny"], {"VLLM_SERVER_DEV_MODE": "0"}, pytest.fail).server.server_dev_mode


# ---- timings -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def timed() -> Iterator[CaseServer]:
    model = ScriptedModel(scripted_tokenizer())
    model.say_bytes(b"Hello, world")
    with case_server(*scripted_engine(model), enable_per_request_metrics=True) as running:
        yield running


@pytest.mark.parametrize("path", [COMPLETIONS, CHAT])
def test_timings_of_one_prompt(timed: CaseServer, path: str) -> None:
    send = timed.chat if path == CHAT else timed.complete
    whole = send().json()["metrics"]
    chunks = timed.chunks(path)
    with_usage = timed.chunks(path, stream_options={"include_usage": True})
    assert all("metrics" not in chunk for chunk in (*chunks[:-1], *with_usage[:-1]))
    for found in (whole, chunks[-1]["metrics"], with_usage[-1]["metrics"]):
        assert found.keys() == {"queue_time_ms", "time_to_first_token_ms", "generation_time_ms", "mean_itl_ms", "tokens_per_second"}
        assert 0 <= found["queue_time_ms"] <= found["time_to_first_token_ms"]
        assert found["mean_itl_ms"] == pytest.approx(found["generation_time_ms"] / 12)  # 12 letters and the end
        whole_ms = found["time_to_first_token_ms"] + found["generation_time_ms"]
        assert found["tokens_per_second"] == pytest.approx(13 / whole_ms * 1000)
    assert send(max_tokens=1).json()["metrics"]["mean_itl_ms"] is None


def test_no_timings_for_several_prompts_or_unasked(timed: CaseServer, api: Api) -> None:
    assert timed.complete(prompt=["a", "b"]).json()["metrics"] is None
    assert all("metrics" not in chunk for chunk in timed.chunks(COMPLETIONS, prompt=["a", "b"]))
    assert api.complete()["metrics"] is None


# ---- logs ----------------------------------------------------------------------------------------------------------


def test_answers_are_logged_on_request_and_prompts_never(make_api: Make, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, logger="headway")
    make_api(ScriptedEngine(b"Hello, world")).complete(prompt="secret")
    assert "Hello, world" not in caplog.text
    api = make_api(ScriptedEngine(b"Hello, world"), enable_log_outputs=True, max_log_len=5)
    api.complete(prompt="secret")
    api.stream(CHAT, messages=[{"role": "user", "content": "secret"}])
    lines = [record.message for record in caplog.records if "Generated response" in record.message]
    assert [line.partition("output: ")[2] for line in lines] == ["'Hello...', finish_reason: stop"] * 2
    assert "secret" not in caplog.text


def test_a_file_configures_logging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VLLM_LOGGING_CONFIG_PATH", raising=False)
    with pytest.raises(ConfigError):
        configure_logging(config_file=str(tmp_path / "none.json"))
    log = tmp_path / "own.log"
    config = {
        "version": 1, "disable_existing_loggers": False,
        "handlers": {"own": {"class": "logging.FileHandler", "filename": str(log)}},
        "loggers": {"headway.own": {"handlers": ["own"], "level": "INFO"}},
    }  # fmt: skip
    file = tmp_path / "log.json"
    file.write_text(json.dumps(config))
    configure_logging(config_file=str(file))
    logging.getLogger("headway.own").info("to the file")
    assert "to the file" in log.read_text()


def test_the_prefix_cache_is_reset_for_developers(api: Api, make_api: Make) -> None:
    error(api.post("/reset_prefix_cache", {}), 404, "route_not_found")
    open_to_all = make_api(server_dev_mode=True)
    response = open_to_all.post("/reset_prefix_cache", None)
    assert (response.status_code, response.json()) == (200, {"reset": True})
    open_to_all.engine.hold = asyncio.Event()
    response = open_to_all.post("/reset_prefix_cache", None)
    assert (response.status_code, response.json()) == (409, {"reset": False})
