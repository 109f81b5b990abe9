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
from headway.cli.srun_config import srun_config
from headway.compose.stack import Example, default_stack, example_requests
from headway.compose.supervisor import Health, ProcessEndedError
from headway.compose.up import StartView, up
from headway.host.cpu_budget import cpu_budget
from headway.runtime.default_models import DEFAULT_MODELS
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
    stack = [replace(declared("engine", "2"), models=("tiny",), licences=("gemma",), serves="tiny (chat)", examples=(Example("/chat", {}, "NO_KEY"),))]
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


def test_without_a_terminal_a_stage_is_one_line_however_its_numbers_change() -> None:
    out = io.StringIO()
    view = StartView(Console(file=out))
    for done in ("1.5", "20", "300.25"):
        view.health("runtime", Health(False, f"loading: {done} MiB of 300.25 MiB"))
    view.health("runtime", Health(False, "warming"))
    assert out.getvalue().splitlines() == ["runtime: loading: 1.5 MiB of 300.25 MiB", "runtime: warming"]


def test_what_stays_wrong_with_a_process_is_said_and_the_rest_goes_on(fetched: list[str]) -> None:
    stack = [replace(declared("engine"), serves="tiny"), declared("runtime", "0", "no family recognizes the package")]
    out = io.StringIO()
    watcher = threading.Thread(target=lambda: eventually(lambda: "Ctrl-C" in out.getvalue()) and signal.raise_signal(signal.SIGINT))
    watcher.start()
    up(stack, Console(file=out, width=200))
    watcher.join()
    assert "Not all of runtime works: no family recognizes the package" in out.getvalue()
    assert "Headway is up" in out.getvalue()


def test_the_default_stack_listens_where_it_says() -> None:
    engine, runtime = default_stack(port=8123)
    config = serve_config(engine.command[4:], {}, lambda warning: None)
    assert (config.engine.model, config.server.host, config.server.port) == ("smollm2-135m-instruct", "127.0.0.1", 8123)
    assert config.server.exit_on_engine_death, "a dead engine must end `headway up`"
    assert (engine.host, engine.port, engine.base_url) == ("127.0.0.1", 8123, "http://127.0.0.1:8123/v1")
    small = srun_config(runtime.command[4:], {}, lambda warning: None)
    assert [entry.model for entry in small.entries] == list(DEFAULT_MODELS) == list(runtime.models)
    assert (small.settings.host, small.settings.port, runtime.port) == ("127.0.0.1", 8223, 8223)
    assert small.settings.threads is not None
    assert 1 <= small.settings.threads <= cpu_budget().threads
    gemma = default_stack("gemma3-270m", licences=("gemma",))[0]
    assert serve_config(gemma.command[4:], {}, lambda warning: None).engine.accept_licence == ("gemma",)
    assert [each.health_url for each in default_stack(host="0.0.0.0")] == ["http://127.0.0.1:8000/health", "http://127.0.0.1:8100/health"]
    assert [each.base_url for each in default_stack(host="::1", runtime_port=9)] == ["http://[::1]:8000/v1", "http://[::1]:9/v1"]
    assert default_stack(port=65_500)[1].port == 65_400
    assert len(default_stack(with_runtime=False)) == 1


def test_the_requests_to_paste_survive_the_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("VLLM_API_KEY", "VLLM_SRUN_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    engine, runtime = default_stack("/models/it's here.gguf")
    [chat], asked = example_requests(engine), example_requests(runtime)
    words = shlex.split(chat)
    assert words[:3] == ["curl", "-s", "http://127.0.0.1:8000/v1/chat/completions"]
    assert json.loads(words[words.index("-d") + 1])["model"] == "/models/it's here.gguf"
    assert [shlex.split(each)[2] for each in asked] == [f"http://127.0.0.1:8100/v1/{path}" for path in ("systemone", "embeddings")]
    assert not any("Authorization" in each for each in (chat, *asked))
    monkeypatch.setenv("VLLM_API_KEY", "s3cret-key")
    assert '-H "Authorization: Bearer $VLLM_API_KEY"' in example_requests(engine)[0]
    assert "s3cret" not in example_requests(engine)[0]
    assert "Authorization" not in example_requests(runtime)[0]
