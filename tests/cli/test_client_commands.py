"""wait, status, chat, complete and stop against a scripted server process."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from headway.cli.chat import chat_command
from headway.cli.complete import complete_command
from headway.cli.server_client import ServerClient, server_url
from headway.cli.status import ServerStatus, status_command, status_lines
from headway.cli.stop import chosen, stop_command
from headway.cli.wait import wait_command
from headway.errors import HeadwayError
from headway.server.run_file import RunningServer
from tests.server.process import ServerProcess, server_process

ANSWER = "Grüße 🙂"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[ServerProcess]:
    with server_process(folder, "ready", "tiny", "--api-key", "k") as running:
        running.read_note()
        running.until_logged("Application startup complete")
        yield running


@pytest.fixture
def cli(folder: Path, monkeypatch: pytest.MonkeyPatch) -> CliRunner:
    monkeypatch.setenv("HEADWAY_CACHE", str(folder))
    monkeypatch.setenv("VLLM_API_KEY", "k")
    return CliRunner()


def ok(result: Result) -> Result:
    assert result.exit_code == 0, (result.output, result.exception)
    return result


def test_wait(cli: CliRunner, server: ServerProcess) -> None:
    assert "is ready" in ok(cli.invoke(wait_command, [server.url])).stderr
    found = json.loads(ok(cli.invoke(wait_command, ["--json"])).stdout)
    assert (found["url"], found["state"]) == (server.url, "ok")
    ok(cli.invoke(wait_command, [server.url.removeprefix("http://") + "/v1/"]))


def test_wait_tells_stage_and_reason(cli: CliRunner, tmp_path: Path) -> None:
    with server_process(tmp_path, "loading") as loading:
        loading.read_note()
        result = cli.invoke(wait_command, [loading.url, "--timeout", "0.3"])
        assert result.exit_code == 1
        assert "loading" in result.stderr
        assert isinstance(result.exception, HeadwayError)
        assert result.exception.reason == "not_ready"


def test_chat_once(cli: CliRunner, server: ServerProcess) -> None:
    assert ok(cli.invoke(chat_command, ["-q", "Hi"])).stdout == ANSWER + "\n"
    found = json.loads(ok(cli.invoke(chat_command, ["-q", "Hi", "--json", "--max-tokens", "3", "--system-prompt", "S"])).stdout)
    assert (found["model"], found["text"], found["usage"]["completion_tokens"]) == ("tiny", "Gr\ufffd", 3)


def test_a_talk_remembers(cli: CliRunner, server: ServerProcess) -> None:
    result = ok(cli.invoke(chat_command, ["--url", server.url], input="one\n\ntwo\n"))
    assert result.stdout.count(ANSWER) == 2


def test_complete(cli: CliRunner, server: ServerProcess) -> None:
    assert ok(cli.invoke(complete_command, ["-q", "Hi"])).stdout == ANSWER + "\n"
    assert json.loads(ok(cli.invoke(complete_command, ["-q", "Hi", "--json"])).stdout)["text"] == ANSWER
    assert ANSWER in ok(cli.invoke(complete_command, input="one\n")).stdout


def test_refusals_carry_the_message_of_the_server(cli: CliRunner, server: ServerProcess) -> None:
    for options, reason in ((["--api-key", "wrong"], "unauthorized"), (["--model", "no-such"], "model_not_found")):
        result = cli.invoke(chat_command, ["-q", "Hi", *options])
        assert isinstance(result.exception, HeadwayError)
        assert result.exception.reason == reason


def test_status(cli: CliRunner, server: ServerProcess) -> None:
    (found,) = json.loads(ok(cli.invoke(status_command, ["--json"])).stdout)
    assert (found["url"], found["state"], found["model"], found["pid"]) == (server.url, "ok", "tiny", server.process.pid)
    assert (found["running"], found["waiting"]) == (0, 0)
    assert found["rss_bytes"] > 0
    (elsewhere,) = json.loads(ok(cli.invoke(status_command, ["--json", "--url", server.url])).stdout)
    assert (elsewhere["state"], elsewhere["pid"]) == ("ok", None)
    head, numbers = ok(cli.invoke(status_command)).stdout.splitlines()
    assert head == f"{server.url}  tiny  ok"
    assert f"pid {server.process.pid}, up 0:0" in numbers
    assert "0 running, 0 waiting, KV cache 0.0% in use" in numbers


def test_status_of_a_server_that_is_not_ready() -> None:
    assert status_lines(ServerStatus("http://x", "loading", "warming", 0.5))[0] == "http://x  warming 50%"
    assert status_lines(ServerStatus("http://x", "dead", reason="why"))[0] == "http://x  dead: why"


def test_the_only_server_is_found_without_an_address(cli: CliRunner, server: ServerProcess) -> None:
    assert server_url(None) == server.url


def test_stop(cli: CliRunner, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path))
    with server_process(tmp_path, "ready") as running:
        running.read_note()
        result = cli.invoke(stop_command, ["--port", "1"])
        assert isinstance(result.exception, HeadwayError)
        assert str(running.process.pid) in str(result.exception)
        assert f"stopped {running.url}" in ok(cli.invoke(stop_command, ["--pid", str(running.process.pid)])).stdout
        assert running.ended() == 0
    result = cli.invoke(stop_command)
    assert isinstance(result.exception, HeadwayError)
    assert result.exception.reason == "no_server"


def test_which_server_to_stop() -> None:
    one, two = (RunningServer(i, 0.0, f"http://127.0.0.1:{i}", "m", i) for i in (1, 2))
    assert chosen([one], None, None, False) == [one]
    assert chosen([one, two], 2, None, False) == [two]
    assert chosen([one, two], None, 1, False) == [one]
    assert chosen([one, two], None, None, True) == [one, two]
    with pytest.raises(HeadwayError, match="2 servers run here") as found:
        chosen([one, two], None, None, False)
    assert found.value.reason == "ambiguous_server"


def test_addresses(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HEADWAY_CACHE", str(tmp_path))
    assert server_url(None) == "http://127.0.0.1:8000"
    given: dict[str, Any] = {"localhost:1": "http://localhost:1", "https://x/v1/": "https://x", "http+unix:///a/b.sock": "http+unix:///a/b.sock"}
    assert {g: server_url(g) for g in given} == given


def test_what_is_no_server_is_named() -> None:
    for url in ("http://127.0.0.1:9", "http://[bad", "http+unix:///no/such.sock"):
        with pytest.raises(HeadwayError, match="No answer from"):
            ServerClient(url).get("/health")
