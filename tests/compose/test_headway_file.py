"""headway.yaml: what it may say, and every mistake in it with its line."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from headway.cli.up import up_command
from headway.compose.headway_file import HeadwayFile, engine_variable, flag_words, read_headway_file
from headway.compose.stack import stack_of
from headway.errors import ConfigError
from headway.router.config.diagnostics import ConfigRejected
from tests.docs.pages import ROOT, blocks

WHOLE = """
engines:
  - name: fast
    model: smollm2-135m-instruct
    port: ${FAST_PORT:-9001}
    flags: {dtype: float32, max-model-len: 512, enable-prefix-caching: false}
runtimes:
  - name: vectors
    models: [all-minilm-l6-v2]
    port: 9100
    flags: {threads: 1, offline: true}
router:
  config: router.yaml
  demonstration: Hello
"""
ROUTER = """
version: v0.3
listeners: [{name: public, address: 127.0.0.1, port: 9899}]
providers:
  defaults: {model: fast}
  models: [{name: fast, backend_refs: [{name: one, endpoint: "${HEADWAY_ENGINE_FAST}"}]}]
"""


def read(folder: Path, text: str, **environment: str) -> HeadwayFile:
    path = folder / "headway.yaml"
    path.write_text(text)
    return read_headway_file(path, environment)


def test_a_whole_file_becomes_processes(tmp_path: Path) -> None:
    (tmp_path / "router.yaml").write_text(ROUTER)
    engine, runtime, router = stack_of(read(tmp_path, WHOLE, FAST_PORT="9002"), tmp_path)
    assert engine.command[3:5] == ("serve", "smollm2-135m-instruct")
    assert engine.command[-5:] == ("--dtype", "float32", "--max-model-len", "512", "--no-enable-prefix-caching")
    assert engine.base_url == "http://127.0.0.1:9002/v1"
    assert runtime.command[3:] == ("serve", "all-minilm-l6-v2", "--host", "127.0.0.1", "--port", "9100", "--threads", "1", "--offline")
    assert router.command[-2:] == ("--config", str(tmp_path / "router.yaml"))
    assert router.variables == {"HEADWAY_ENGINE_FAST": "127.0.0.1:9002", "HEADWAY_RUNTIME": "http://127.0.0.1:9100"}
    assert router.base_url == "http://127.0.0.1:9899/v1"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("engine: []", ["line 1", "engine", "engines"]),
        ("{}", ["nothing to run"]),
        ("engines:\n  - name: a\n    model: m\n", ["line 2", "port"]),
        ("engines:\n  - {name: a, model: m, port: 1}\n  - {name: a, model: m, port: 1}", ["line 2", "line 3", "names 2 parts", "taken twice"]),
        ("engines:\n  - name: A B\n    model: m\n    port: 99999\n", ["line 2", "line 4"]),
        ("router:\n  flags: {a: {b: 1}}\n", ["line 2"]),
        ("engines: [", ["line 1"]),
    ],
)
def test_every_mistake_is_told_with_its_line(tmp_path: Path, text: str, told: list[str]) -> None:
    with pytest.raises(ConfigRejected) as caught:
        read(tmp_path, text)
    for each in told:
        assert each in caught.value.message


def test_the_router_configuration_is_checked_before_anything_starts(tmp_path: Path) -> None:
    (tmp_path / "router.yaml").write_text(ROUTER.replace("fast}", "nobody}"))
    with pytest.raises(ConfigRejected, match="nobody"):
        stack_of(read(tmp_path, WHOLE), tmp_path)


def test_words_of_flags() -> None:
    assert flag_words({"a_b": True, "c": False, "d": 1.5, "e": ["x", "y"]}) == ["--a-b", "--no-c", "--d", "1.5", "--e", "x", "--e", "y"]
    assert engine_variable("my-engine2") == "HEADWAY_ENGINE_MY_ENGINE2"


def test_options_of_the_default_stack_do_not_go_with_a_file(tmp_path: Path) -> None:
    read(tmp_path, WHOLE)
    result = CliRunner().invoke(up_command, [str(tmp_path / "headway.yaml"), "--port", "1"])
    assert isinstance(result.exception, ConfigError)
    assert "--port" in result.exception.message
    missing = CliRunner().invoke(up_command, [str(tmp_path / "other.yaml")])
    assert isinstance(missing.exception, ConfigError)


def test_the_example_of_the_documentation_is_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path))
    [example] = [block for block in blocks(ROOT / "docs" / "router.md") if block.tag == "headway"]
    parts = read(tmp_path, example.text)
    assert [each.name for each in stack_of(parts, tmp_path)] == ["small", "runtime", "router"]
