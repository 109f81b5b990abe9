"""`headway up` from the outside: what it prints, and that nothing is left."""

from __future__ import annotations

import io
import json
import shlex
import signal
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

import headway.compose.up
from headway.cli.serve_config import serve_config
from headway.compose.stack import default_stack, example_request
from headway.compose.supervisor import ProcessEndedError
from headway.compose.up import up
from tests.compose.test_supervisor import declared, eventually


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    models: list[str] = []

    def resolve(reference: str, *, accept_licence: tuple[str, ...], progress: object) -> Path:
        models.append(" ".join([reference, *accept_licence]))
        return Path("/nowhere")

    monkeypatch.setattr(headway.compose.up, "resolve", resolve)
    return models


def test_it_fetches_starts_says_how_to_ask_and_stops_on_a_signal(fetched: list[str]) -> None:
    stack = [replace(declared("engine", "2"), models=("tiny",), licences=("gemma",), serves="tiny (chat)")]
    out = io.StringIO()

    def interrupt() -> None:
        if eventually(lambda: "Ctrl-C" in out.getvalue()):
            signal.raise_signal(signal.SIGINT)

    before = threading.active_count()
    watcher = threading.Thread(target=interrupt)
    watcher.start()
    up(stack, Console(file=out, width=200))
    watcher.join()
    text = out.getvalue()
    assert fetched == ["tiny gemma"]
    for shown in ("engine: loading", "engine: ready", "Headway is up", "tiny (chat)", "curl -s http://127.0.0.1", "no process is left"):
        assert shown in text
    assert threading.active_count() == before


def test_a_process_that_dies_is_an_error(fetched: list[str]) -> None:
    stack = [replace(declared(), command=("/bin/sh", "-c", "echo no memory; exit 7"))]
    with pytest.raises(ProcessEndedError, match=r"(?s)exit code 7.*no memory"):
        up(stack, Console(file=io.StringIO()))


def test_the_default_stack_is_one_engine_that_listens_where_it_says() -> None:
    [engine] = default_stack(port=8123)
    config = serve_config(engine.command[4:], {}, lambda warning: None)
    assert (config.engine.model, config.server.host, config.server.port) == ("smollm2-135m-instruct", "127.0.0.1", 8123)
    assert config.server.exit_on_engine_death, "a dead engine must end `headway up`"
    assert (engine.host, engine.port, engine.base_url) == ("127.0.0.1", 8123, "http://127.0.0.1:8123/v1")
    [gemma] = default_stack("gemma3-270m", licences=("gemma",))
    assert serve_config(gemma.command[4:], {}, lambda warning: None).engine.accept_licence == ("gemma",)
    [everywhere] = default_stack(host="0.0.0.0")
    assert everywhere.health_url == "http://127.0.0.1:8000/health"
    [six] = default_stack(host="::1")
    assert six.base_url == "http://[::1]:8000/v1"


def test_the_request_to_paste_survives_the_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VLLM_API_KEY", raising=False)
    [engine] = default_stack("/models/it's here.gguf")
    words = shlex.split(example_request(engine))
    assert words[:3] == ["curl", "-s", "http://127.0.0.1:8000/v1/chat/completions"]
    assert json.loads(words[words.index("-d") + 1])["model"] == "/models/it's here.gguf"
    assert "Authorization" not in example_request(engine)
    monkeypatch.setenv("VLLM_API_KEY", "s3cret-key")
    assert '-H "Authorization: Bearer $VLLM_API_KEY"' in example_request(engine)
    assert "s3cret" not in example_request(engine)
