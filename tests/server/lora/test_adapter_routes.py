"""Adapters over HTTP: as names of models, loaded and unloaded while others' requests run."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from headway.models.lora.adapter_settings import CONFIG
from tests.cases.case_server import CaseServer, case_server
from tests.cases.tiny_model import VOCAB, save_tiny_model, tiny_engine
from tests.models.lora.peft_adapters import PeftAdapter, make_adapter
from tests.server.api import CHAT, COMPLETIONS

LOAD, UNLOAD = "/v1/load_lora_adapter", "/v1/unload_lora_adapter"
PROMPT = list(b"Once upon a time")
NO_TEXT = range(258, VOCAB)  # rows of the model that the tokenizer has no text for


@dataclass
class World:
    server: CaseServer
    model: Any
    folder: Path
    a: PeftAdapter
    b: PeftAdapter

    def load(self, name: str, adapter: PeftAdapter | Path | str, **body: Any) -> Any:
        path = adapter.folder if isinstance(adapter, PeftAdapter) else adapter
        return self.server.post(LOAD, {"lora_name": name, "lora_path": str(path), **body})

    def unload(self, name: str) -> Any:
        return self.server.post(UNLOAD, {"lora_name": name})

    def ids(self, model: str, count: int = 8, **body: Any) -> list[int]:
        answer = self.server.post(
            COMPLETIONS, {"model": model, "prompt": PROMPT, "max_tokens": count, "min_tokens": count, "temperature": 0, "return_token_ids": True, **body}
        ).json()
        assert answer["model"] == model, answer
        found: list[int] = answer["choices"][0]["token_ids"]
        return found

    def names(self) -> list[str]:
        return [entry["id"] for entry in self.server.client.get("/v1/models").json()["data"]]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("lora")
    model = save_tiny_model(folder / "model")
    a, b = (make_adapter(model, folder / "adapters" / name, seed=seed) for name, seed in (("a", 1), ("b", 2)))
    engine = tiny_engine(folder / "model", enable_lora=True)
    with case_server(*engine, allow_runtime_lora_updating=True, lora_folders=(str(folder / "adapters"),)) as running:
        yield World(running, model, folder / "adapters", a, b)
        running.check_alive()


@pytest.fixture(autouse=True)
def _clean(world: World) -> Iterator[None]:
    yield
    for name in world.names()[1:]:
        assert world.unload(name).status_code == 200


def test_an_adapter_comes_and_goes(world: World) -> None:
    done = world.load("a", world.a)
    assert (done.status_code, done.text) == (200, "Success: LoRA adapter 'a' added successfully.")
    assert done.headers["content-type"].startswith("text/plain")
    entry = world.server.client.get("/v1/models").json()["data"][1]
    assert (entry["id"], entry["parent"], entry["root"]) == ("a", "tiny", str(world.a.folder))
    want = world.a.greedy(PROMPT, 8, NO_TEXT)
    assert world.ids("a") == want != world.ids("tiny")
    again = world.load("a", world.a)
    assert (again.status_code, again.json()["error"]["type"]) == (400, "InvalidUserInput")
    assert again.json()["error"]["message"].startswith("The lora adapter 'a' has already been loaded. If you want to load the adapter in place, set 'load_inplace' to True.")
    assert world.load("a", world.b, load_inplace=True).status_code == 200
    assert world.ids("a") == world.b.greedy(PROMPT, 8, NO_TEXT) != want
    gone = world.unload("a")
    assert (gone.status_code, gone.text) == (200, "Success: LoRA adapter 'a' removed successfully.")
    assert world.unload("a").json()["error"]["message"] == "The lora adapter 'a' cannot be found."
    missing = world.server.post(COMPLETIONS, {"model": "a", "prompt": "x"})
    assert (missing.status_code, missing.json()["error"]["param"]) == (404, "model")


def test_chats_streams_counts_and_descriptions_know_it(world: World) -> None:
    world.load("a", world.a)
    chunks = world.server.chunks(CHAT, model="a", max_tokens=3)
    assert {chunk["model"] for chunk in chunks} == {"a"}
    assert world.server.post("/tokenize", {"model": "a", "prompt": "abc"}).json()["count"] == 3
    described = world.server.client.get("/openapi.json").json()
    assert described["components"]["schemas"]["CompletionBody"]["properties"]["model"]["enum"] == ["tiny", "a", None]
    line = next(line for line in world.server.client.get("/metrics").text.splitlines() if line.startswith("vllm:lora_requests_info{"))
    assert 'max_lora="1"' in line
    world.unload("a")
    described = world.server.client.get("/openapi.json").json()
    assert described["components"]["schemas"]["CompletionBody"]["properties"]["model"]["enum"] == ["tiny", None]


def test_requests_finish_with_the_weights_they_began_with(world: World) -> None:
    """While one runs, its name is taken away and given to another adapter, and its files are gone."""
    own = make_adapter(world.model, world.folder / "own", seed=5)
    want = own.greedy(PROMPT, 40, NO_TEXT)
    world.load("own", own)
    core = world.server.engine.loaded.core
    held, go = threading.Event(), threading.Event()
    execute = core.runner.execute

    def slow(plan: Any) -> Any:
        held.set()
        go.wait(20)
        return execute(plan)

    core.runner.execute = slow  # type: ignore[method-assign]
    try:
        found: list[list[int]] = []
        asking = threading.Thread(target=lambda: found.append(world.ids("own", 40)))
        asking.start()
        assert held.wait(20)
        assert world.unload("own").status_code == 200
        assert world.load("own", world.b).status_code == 200
        for each in own.folder.iterdir():
            each.unlink()
        own.folder.rmdir()
    finally:
        go.set()
        core.runner.execute = execute  # type: ignore[method-assign]
    asking.join(30)
    assert found == [want]


def _config(folder: Path, base: PeftAdapter, **changes: Any) -> Path:
    folder.mkdir(parents=True)
    for each in base.folder.iterdir():
        (folder / each.name).write_bytes(each.read_bytes())
    (folder / CONFIG).write_text(json.dumps(json.loads((folder / CONFIG).read_text()) | changes))
    return folder


@pytest.mark.parametrize(
    ("make", "status", "reason"),
    [(lambda w: w.folder / "nothing", 404, "adapter_not_found"),
     (lambda w: _config(w.folder / "rank", w.a, r=64), 400, "adapter_rank"),
     (lambda w: _config(w.folder / "dora", w.a, use_dora=True), 400, "adapter_feature"),
     (lambda w: _config(w.folder / "shape", w.a, r=5), 400, "adapter_shape"),
     (lambda w: w.folder.parent / "model", 400, "lora_path_not_allowed"),
     (lambda w: w.folder / ".." / "model", 400, "lora_path_not_allowed"),
     (lambda w: "", 400, "lora_name_invalid")],
)  # fmt: skip
def test_adapters_that_cannot_be_used_hurt_nobody(world: World, make: Any, status: int, reason: str) -> None:
    world.load("good", world.a)
    want = world.a.greedy(PROMPT, 30, NO_TEXT)
    found: list[list[int]] = []
    asking = [threading.Thread(target=lambda: found.append(world.ids("good", 30))) for _ in range(2)]
    for each in asking:
        each.start()
    response = world.load("bad", make(world))
    for each in asking:
        each.join(30)
    assert (response.status_code, response.json()["error"]["reason"]) == (status, reason), response.text
    assert found == [want, want]
    assert world.names() == ["tiny", "good"]


def test_links_do_not_lead_out_of_the_folders(world: World, tmp_path: Path) -> None:
    outside = _config(tmp_path / "outside", world.a)
    (world.folder / "link").symlink_to(outside)
    half = _config(world.folder / "half", world.a)
    (half / CONFIG).unlink()
    (half / CONFIG).symlink_to(outside / CONFIG)
    for path in (world.folder / "link", half):
        assert world.load("x", path).json()["error"]["reason"] == "lora_path_not_allowed"


@pytest.mark.parametrize("name", ["tiny", "", "x" * 257, "a\nb"])
def test_names_that_cannot_be(world: World, name: str) -> None:
    response = world.load(name, world.a)
    assert (response.status_code, response.json()["error"]["reason"]) == (400, "lora_name_invalid")
