"""`headway run-batch`, without the model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headway.cli import run_batch
from headway.cli.main import run
from headway.engine.async_engine import AsyncEngine
from headway.engine.config import EngineConfig
from headway.errors import ConfigError, NotBuiltError
from headway.server.batch import process
from headway.server.batch.runner import BatchCount
from headway.server.settings import ServerSettings
from tests.cases.scripted_model import ScriptedModel, scripted_engine, scripted_tokenizer


def test_words_become_the_engine_and_the_files(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[Any] = []

    def answer(config: EngineConfig, settings: ServerSettings, source: str, target: str, tell: Any) -> BatchCount:
        seen.append((config.model, config.max_num_seqs, settings.max_json_depth, source, target))
        return BatchCount(2, 1)

    monkeypatch.setattr(process, "answer_file", answer)
    monkeypatch.setattr(run_batch, "configure_logging", lambda *args, **kwargs: None)  # of the whole process
    for program in ("headway", "vllm"):
        run(program, ["run-batch", "-i", "in.jsonl", "-o", "out.jsonl", "--model", "m", "--max-num-seqs", "3", "--max-json-depth=9"])
        assert seen[-1] == ("m", 3, 9, "in.jsonl", "out.jsonl")
        assert capsys.readouterr().out == "2 answered, 1 refused: out.jsonl\n"
    run("headway", ["run-batch", "m2", "--input-file", "a", "--output-file", "b"])
    assert seen[-1][0] == "m2"


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    empty, full = tmp_path / "empty", tmp_path / "full"
    empty.touch()
    full.write_text("{}\n")
    for source, target, kind in (
        ("http://x/in", "out", NotBuiltError), (str(full), "https://x/out", NotBuiltError), (str(tmp_path / "no"), "out", ConfigError),
        (str(empty), "out", ConfigError), (str(full), str(full), ConfigError),
    ):  # fmt: skip
        with pytest.raises(kind):
            process.answer_file(EngineConfig("m"), ServerSettings(), source, target, lambda stage, done: None)
    assert full.read_text() == "{}\n"


def test_a_file_is_answered_by_an_engine_that_ends_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = ScriptedModel(scripted_tokenizer())
    model.say_bytes(b"Hello")
    engine, _ = scripted_engine(model)

    async def start(*args: Any) -> AsyncEngine:
        return engine

    monkeypatch.setattr(process, "start_engine", start)
    source, target = tmp_path / "in", tmp_path / "out"
    ask = {"custom_id": "a", "method": "POST", "url": "/v1/completions", "body": {"prompt": "x", "max_tokens": 9}}
    source.write_text(json.dumps(ask) + "\n\nbroken\n")
    told: list[tuple[str, float]] = []
    settings = ServerSettings(api_key=("nobody sends it",))
    assert process.answer_file(EngineConfig("tiny"), settings, str(source), str(target), lambda *stage: told.append(stage)) == BatchCount(1, 1)
    first, second = map(json.loads, target.read_text().splitlines())
    assert first["response"]["body"]["choices"][0]["text"] == "Hello"
    assert second["error"]["reason"] == "body_invalid"
    assert told[-1] == ("answering", pytest.approx(1, abs=0.02))
    assert not engine._thread.is_alive()
