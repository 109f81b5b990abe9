"""The command `headway` itself: help and version at once, errors in one line."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from pathlib import Path

import click
import pytest

from headway import __version__
from headway.cli.lazy_group import exit_code
from headway.cli.main import _COMMANDS, main
from headway.errors import ArtifactError, ConfigError, NotBuiltError

SRC = Path(__file__).parents[2] / "src"


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["headway", *words])
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


@pytest.mark.parametrize("word", ["--version", "-v"])
def test_version_is_bare(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], word: str) -> None:
    assert run(monkeypatch, word) == 0
    assert capsys.readouterr().out == f"{__version__}\n"


def test_help_names_all_commands_and_imports_none() -> None:
    code = "import sys; sys.argv = ['headway', '--help']; from headway.cli.main import main; main(); print(*sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], cwd=SRC, capture_output=True, text=True, check=True)
    *shown, modules = done.stdout.splitlines()
    for name in _COMMANDS:
        assert any(line.split()[:1] == [name] for line in shown)
    loaded = set(modules.split())
    assert not loaded & {"torch", "transformers", "fastapi", "httpx", "rich.console"}


@pytest.mark.parametrize("name", list(_COMMANDS))
def test_every_command_is_there(name: str) -> None:
    module, attribute = _COMMANDS[name][0].split(":")
    assert isinstance(getattr(import_module(module), attribute), click.Command)


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["collect-env"], 2, "headway collect-env is not built yet"),
        (["nope"], 2, "No such command 'nope'"),
        (["serve", "--prot", "1"], 2, "Unknown flag --prot. Did you mean --port?"),
        (["serve", "--enable-expert-parallel"], 2, "--enable-expert-parallel is not built yet"),
        (["serve", "--trust-remote-code"], 2, "--trust-remote-code is refused"),
        (["serve", "--speculative-model", "x", "--spec-method", "eagle"], 2, "the speculation method eagle is not built"),
        (["serve", "--port", "70000"], 2, "--port must be 0 to 65535, got '70000'"),
        (["wait", "127.0.0.1:9", "--timeout", "0"], 1, "http://127.0.0.1:9 is not ready: still unreachable after 0 s"),
        (["chat", "--url", "127.0.0.1:9", "-q", "x"], 1, "No answer from http://127.0.0.1:9"),
        (["status", "--url", "127.0.0.1:9"], 1, "No answer from http://127.0.0.1:9"),
        (["wait", "--timeout", "x"], 2, "is not a valid float"),
    ],
)
def test_errors_are_one_line_and_a_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path, words: list[str], code: int, text: str
) -> None:
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path))
    assert run(monkeypatch, *words) == code
    shown = capsys.readouterr().err
    assert text in shown
    assert "Traceback" not in shown


def test_help_of_serve(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "serve", "--help=Cache") == 0
    assert "--block-size" in capsys.readouterr().out


def test_a_command_with_a_typing_error_draws_the_nearest(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(monkeypatch, "serv", "model") == 2
    assert "Did you mean 'serve'?" in capsys.readouterr().err


def test_exit_codes() -> None:
    assert [exit_code(e) for e in (ConfigError("x"), NotBuiltError("x"), ArtifactError("x"))] == [2, 2, 1]
