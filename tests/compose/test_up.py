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
from headway.compose.headway_file import EnginePart, HeadwayFile
from headway.compose.stack import RUNTIME_MODELS, Example, ProcessDeclaration, default_parts, example_requests, stack_of
from headway.compose.supervisor import Health, ProcessEndedError
from headway.compose.up import StartView, up
from headway.engine.config import EngineConfig
from headway.host.cpu_budget import cpu_budget
from headway.router.config.load import load_document
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


def engine_config(declaration: ProcessDeclaration) -> EngineConfig:
    return serve_config(declaration.command[4:], {}, lambda warning: None).engine


def test_the_default_stack_is_two_engines_a_runtime_and_a_router_where_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path))
    small, large, runtime, router = stack_of(default_parts(port=8123))
    config = serve_config(small.command[4:], {}, lambda warning: None)
    assert (config.engine.model, config.server.host, config.server.port) == ("smollm2-135m-instruct", "127.0.0.1", 8123)
    assert config.server.exit_on_engine_death, "a dead engine must end `headway up`"
    assert (small.host, small.port, small.base_url) == ("127.0.0.1", 8123, "http://127.0.0.1:8123/v1")
    assert (engine_config(small).dtype, engine_config(large).dtype, large.port) == ("bfloat16", "float32", 8124)
    assert engine_config(large).served_model_name == ("large", "smollm2-135m-instruct")
    served = srun_config(runtime.command[4:], {}, lambda warning: None)
    assert [entry.model for entry in served.entries] == list(RUNTIME_MODELS) == list(runtime.models)
    assert (served.settings.host, served.settings.port, runtime.port) == ("127.0.0.1", 8223, 8223)
    assert served.settings.threads is not None
    assert 1 <= served.settings.threads <= cpu_budget().threads
    assert (router.base_url, router.health_url) == ("http://127.0.0.1:8899/v1", "http://127.0.0.1:8080/ready")
    assert router.variables == {
        "HEADWAY_ENGINE_SMALL": "127.0.0.1:8123", "HEADWAY_ENGINE_LARGE": "127.0.0.1:8124", "HEADWAY_RUNTIME": "http://127.0.0.1:8223",
    }  # fmt: skip
    document = load_document(Path(router.command[router.command.index("--config") + 1]), router.variables).document
    assert document.providers is not None
    assert document.providers.models is not None
    endpoints = [ref.endpoint for model in document.providers.models for ref in model.backend_refs or ()]
    assert endpoints == ["127.0.0.1:8123", "127.0.0.1:8124"]


def test_parts_of_the_default_stack_can_move_and_be_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path))
    [gemma] = stack_of(default_parts("gemma3-270m", licences=("gemma",), with_runtime=False))
    assert engine_config(gemma).accept_licence == ("gemma",)
    one, runtime = stack_of(default_parts(host="0.0.0.0", with_router=False))
    assert [each.health_url for each in (one, runtime)] == ["http://127.0.0.1:8000/health", "http://127.0.0.1:8100/health"]
    moved = stack_of(default_parts(host="::1", runtime_port=9, with_router=False))
    assert [each.base_url for each in moved] == ["http://[::1]:8000/v1", "http://[::1]:9/v1"]
    assert stack_of(default_parts(port=65_500, with_router=False))[1].port == 65_400
    monkeypatch.setenv("VLLM_SR_PORT_OFFSET", "100")
    assert stack_of(default_parts())[3].base_url == "http://127.0.0.1:8999/v1"


def test_the_requests_to_paste_survive_the_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("VLLM_API_KEY", "VLLM_SRUN_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    engine = stack_of(HeadwayFile(engines=[EnginePart(name="a", model="/models/x.gguf", served_name="it's here", port=8000)]))[0]
    runtime = stack_of(default_parts(with_router=False))[1]
    [chat], asked = example_requests(engine), example_requests(runtime)
    words = shlex.split(chat)
    assert words[:3] == ["curl", "-s", "http://127.0.0.1:8000/v1/chat/completions"]
    assert json.loads(words[words.index("-d") + 1])["model"] == "it's here"
    assert [shlex.split(each)[2] for each in asked] == [f"http://127.0.0.1:8100/v1/{path}" for path in ("embeddings", "systemone")]
    assert not any("Authorization" in each for each in (chat, *asked))
    monkeypatch.setenv("VLLM_API_KEY", "s3cret-key")
    assert '-H "Authorization: Bearer $VLLM_API_KEY"' in example_requests(engine)[0]
    assert "s3cret" not in example_requests(engine)[0]
    assert "Authorization" not in example_requests(runtime)[0]
