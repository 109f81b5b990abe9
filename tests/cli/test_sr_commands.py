"""`vllm-sr` without a router: completion, old names, wrong use."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headway.cli.sr import vllm_sr
from headway.cli.sr_route import preview_lines
from headway.cli.sr_run_file import noted_router
from headway.errors import HeadwayError, NotBuiltError
from tests.router.config.documents import BASE


def invoke(*words: str, **environment: str) -> Result:
    return CliRunner().invoke(vllm_sr, list(words), env=environment)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_completion_script_names_the_program(shell: str, tmp_path: Path) -> None:
    shown = invoke("completion", "show", shell)
    assert shown.exit_code == 0
    assert "vllm-sr" in shown.output
    assert "_VLLM_SR_COMPLETE" in shown.output
    place = tmp_path / "deep" / "script"
    assert invoke("completion", "install", shell, "--output", str(place)).exit_code == 0
    assert place.read_text() == shown.output


def test_old_names_still_work_and_are_not_listed() -> None:
    listed = invoke("--help").output
    for name in ("eval", "chat", "validate", "init"):
        assert f"\n  {name} " not in listed
        assert invoke(name, "--help").exit_code == 0
    assert isinstance(invoke("dashboard").exception, NotBuiltError)
    assert "Did you mean 'status'" in invoke("statu").output


@pytest.mark.parametrize(
    ("words", "instead"),
    [(("dashboard",), "vllm-sr status"), (("sim",), "vllm-sr test"), (("benchmark", "run"), "vllm-sr test"), (("benchmark", "compare", "a", "b"), "optimize")],
)
def test_commands_that_are_not_built_name_what_does_their_work(words: tuple[str, ...], instead: str) -> None:
    result = invoke(*words)
    assert isinstance(result.exception, NotBuiltError)
    assert instead in (result.exception.fix or "")


def test_a_benchmark_asks_the_router_of_the_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[list[str]] = []
    monkeypatch.setattr("headway.cli.bench.serve.main", lambda words, **_: asked.append(words))
    config = tmp_path / "config.yaml"
    config.write_text(BASE.replace("port: 8899", "port: 18899"))
    assert invoke("benchmark", "--config", str(config), "--num-prompts", "7", "--request-rate", "3").exit_code == 0
    [words] = asked
    given = dict(zip(words[::2], words[1::2], strict=True))
    assert given["--base-url"] == "http://127.0.0.1:18899"
    assert (given["--model"], given["--served-model-name"], given["--backend"]) == ("vllm-sr/auto", "vllm-sr/auto", "openai-chat")
    assert (given["--num-prompts"], given["--request-rate"]) == ("7", "3")
    assert given["--tokenizer"] == "smollm2-135m-instruct"  # a router has none


def test_routers_are_listed_wherever_their_configurations_lie(tmp_path: Path) -> None:
    cache = {"HEADWAY_CACHE": str(tmp_path / "cache")}
    assert "No router runs here" in invoke("instance", "list", **cache).output
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HEADWAY_CACHE", cache["HEADWAY_CACHE"])
        stale = tmp_path / "cache" / "run" / "router-1.json"
        stale.parent.mkdir(parents=True)
        stale.write_text('{"pid": 1, "started": 5.0, "config": "gone", "state": "gone", "urls": {}}')
        with noted_router(tmp_path / "far" / "config.yaml", tmp_path / "far" / ".vllm-sr", [("management", "http://127.0.0.1:9")]):
            [found] = json.loads(invoke("instance", "list", "--json", **cache).stdout)
            assert (found["pid"], found["config"]) == (os.getpid(), str(tmp_path / "far" / "config.yaml"))
            assert "problem" in found  # nobody answers there
            assert not stale.exists()
        assert json.loads(invoke("instance", "list", "--json", **cache).stdout) == []


def test_signals_have_one_name_in_a_preview() -> None:
    answer = {
        "decision_result": {"used_signals": {"domains": ["law"], "keywords": ["sums"]}, "matched_signals": {"domains": ["law"]}},
        "signal_confidences": {"domain:law": 0.9},
        "signal_types": {"domains": "domain", "keywords": "keyword"},
    }
    lines = preview_lines(answer)
    assert [line for line in lines if "signals" in line or "confidences" in line] == [
        "used signals:    domain:law, keyword:sums", "matched signals: domain:law", "confidences:     domain:law 0.90",
    ]  # fmt: skip


def test_a_preview_needs_exactly_one_request(tmp_path: Path) -> None:
    for words in ((), ("--prompt", "a", "--messages", "[]"), ("--messages", "{}"), ("--messages", "[")):
        result = invoke("route", "preview", *words)
        assert isinstance(result.exception, HeadwayError), words


def test_without_a_router_the_fix_is_told(tmp_path: Path) -> None:
    result = invoke("route", "preview", "--prompt", "x", "--endpoint", "http://127.0.0.1:9")
    assert isinstance(result.exception, HeadwayError)
    assert "vllm-sr serve" in result.exception.message
    for name in ("status", "stop", "logs"):
        gone = invoke(name, "--config", str(tmp_path / "config.yaml"))
        assert isinstance(gone.exception, HeadwayError), name


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--target", "kubernetes"), "not built"),
        (("--gateway", "extproc"), "not built"),
        (("--recipe-env", "A=b"), "not NAME=value"),
        (("--recipe-env", "SURELY_NOT_SET_HERE"), "not set"),
        (("--config", "/no/such/file.yaml"), "config init"),
    ],
)
def test_what_serve_cannot_do_is_refused_with_the_reason(words: tuple[str, ...], told: str) -> None:
    result = invoke("serve", *words)
    assert isinstance(result.exception, HeadwayError)
    assert told in result.exception.message


def test_removed_options_name_what_replaces_them() -> None:
    assert "--max-num-seqs" in invoke("serve", "--runtime-profile", "fast").output
    assert "kubernetes" in invoke("serve", "--namespace", "x").output


def test_options_of_containers_are_said_to_have_no_effect(tmp_path: Path) -> None:
    config = ("--config", str(tmp_path / "none.yaml"))
    told = invoke("serve", *config, "--image", "x", "--minimal", "--target", "docker", VLLM_SR_IMAGE="y", VLLM_SR_STACK_NAME="")
    assert told.stderr.count("no effect") == 1
    for name in ("--image", "--minimal", "--target", "VLLM_SR_IMAGE"):
        assert name in told.stderr
    assert "STACK" not in told.stderr
    for words in (("status", "--container-runtime", "podman"), ("logs", "--target", "docker"), ("stop", "--target", "docker"), ("validate", "--image", "x")):
        assert "no effect: " + words[1] in invoke(*words, *config).stderr, words
    assert "no effect" not in invoke("status", *config).stderr


@pytest.mark.parametrize("words", [("serve",), ("validate",)])
def test_another_gateway_is_refused(words: tuple[str, ...]) -> None:
    for result in (invoke(*words, "--gateway", "extproc"), invoke(*words, VLLM_SR_GATEWAY="extproc")):
        assert isinstance(result.exception, HeadwayError)
        assert result.exception.reason == "not_built"


def test_every_command_knows_the_place(tmp_path: Path) -> None:
    for name in ("status", "logs", "stop"):
        assert "kubernetes only" in invoke(name, "--namespace", "x").stderr
        assert isinstance(invoke(name, "--target", "k8s").exception, HeadwayError)
