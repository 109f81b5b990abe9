"""C11: a start without network. What is cached starts without one attempt to connect; what is not is refused with what to do."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from headway.artifacts import hub_listing
from headway.artifacts.inspect import inspect
from headway.errors import ArtifactError
from tests.cases.tiny_model import save_tiny_model

COMMIT = "0123456789abcdef0123456789abcdef01234567"
BLOCKED = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"), "http://127.0.0.1:9")

# Counts what would leave the process and makes the cache read-only, then starts every reference and says a few tokens.
_STARTS = """
import errno, json, os, sys
attempts, cache, read_only = [], os.environ["HF_HUB_CACHE"], False
WRITES = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.symlink", "os.link", "os.chmod", "os.utime", "os.truncate")
def watch(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto", "socket.sendmsg"):
        attempts.append(f"{event} {arguments[1:] if event == 'socket.connect' else arguments}")
    elif read_only and (event in WRITES or (event == "open" and arguments[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))):
        if str(arguments[0]).startswith(cache):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), arguments[0])
sys.addaudithook(watch)
from headway.engine.llm import LLM
from headway.engine.sampling_params import SamplingParams
from headway.errors import HeadwayError
for case in json.loads(sys.argv[1]):
    read_only, before = case.pop("read_only", False), len(attempts)
    try:
        llm = LLM(**case, dtype="float32", max_model_len=64, kv_cache_memory_bytes=1 << 20)
        outcome = len(llm.generate("abc", SamplingParams(max_tokens=3, ignore_eos=True), use_tqdm=False)[0].outputs[0].token_ids)
    except HeadwayError as error:
        outcome = [error.reason, error.message]
    print(json.dumps({"outcome": outcome, "attempts": attempts[before:]}), flush=True)
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache with the model acme/tiny and the tokenizer acme/words, as huggingface_hub lays them out."""
    root = tmp_path_factory.mktemp("hub")
    snapshot = root / "models--acme--tiny/snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    save_tiny_model(snapshot)
    (root / "models--acme--tiny/refs").mkdir()
    (root / "models--acme--tiny/refs/main").write_text(COMMIT)
    words = root / "models--acme--words/snapshots" / COMMIT
    words.mkdir(parents=True)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copy(snapshot / name, words)
    shutil.copytree(root / "models--acme--tiny/refs", root / "models--acme--words/refs")
    return root


def environment(cache: Path, offline: bool) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HF_") and name != "NO_PROXY"}
    return {**kept, **BLOCKED, "HF_HUB_CACHE": str(cache), **({"HF_HUB_OFFLINE": "1"} if offline else {})}


def starts(cache: Path, offline: bool, cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    command = [sys.executable, "-c", _STARTS, json.dumps(cases)]
    run = subprocess.run(command, env=environment(cache, offline), capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    return [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")]


@pytest.mark.parametrize("offline", [False, True], ids=["blocked", "HF_HUB_OFFLINE"])
def test_what_is_cached_starts_without_an_attempt_and_what_is_not_says_what_to_do(cache: Path, offline: bool) -> None:
    folder = str(cache / "models--acme--tiny/snapshots" / COMMIT)
    cached: list[dict[str, Any]] = [
        {"model": folder},
        {"model": "acme/tiny", "revision": COMMIT},
        {"model": f"acme/tiny@{COMMIT}"},
        {"model": "acme/tiny"},
        {"model": "acme/tiny", "read_only": True},
        {"model": "acme/tiny", "tokenizer": "acme/words", "read_only": True},
    ]
    absent: list[dict[str, Any]] = [{"model": "acme/absent"}, {"model": "acme/tiny", "tokenizer": "acme/absent"}]
    results = starts(cache, offline, cached + absent)
    assert results[: len(cached)] == [{"outcome": 3, "attempts": []}] * len(cached)
    for result in results[len(cached) :]:
        reason, message = result["outcome"]
        for part in ("acme/absent", str(cache), "hf download acme/absent"):
            assert part in message
        if offline:
            assert (reason, result["attempts"]) == ("offline_not_cached", [])
            assert "HF_HUB_OFFLINE" in message
        else:
            assert reason == "hub_unreachable"
            assert len([attempt for attempt in result["attempts"] if attempt.startswith("socket.connect")]) == 1
    assert len(results) == len(cached) + len(absent)


def test_every_model_of_the_deployment_is_looked_for_before_a_weight_is_read(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headway.engine.llm import LLM

    monkeypatch.setenv("HF_HUB_CACHE", str(cache))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setattr("headway.quantization.weight_reader.WeightReader.read_into", None)
    with pytest.raises(ArtifactError, match="acme/absent") as caught:
        LLM("acme/tiny", tokenizer="acme/absent")
    assert caught.value.reason == "offline_not_cached"


_SERVE = """
import json, os, sys
log = open(os.environ["ATTEMPTS"], "a")
def watch(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname"):
        if not (event == "socket.getaddrinfo" and arguments[0] == "127.0.0.1"):  # to listen on it, a number that nobody is asked for
            log.write(f"{event} {arguments}\\n"); log.flush()
sys.addaudithook(watch)
sys.argv = ["headway", *sys.argv[1:]]
from headway.cli.main import main
main()
"""


@pytest.mark.e2e
def test_a_server_process_starts_from_the_cache_and_asks_nobody(cache: Path, tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    attempts = tmp_path / "attempts"
    attempts.touch()
    flags = ["--dtype", "float32", "--max-model-len", "64", "--kv-cache-memory-bytes", "1MiB", "--port", str(port)]
    command = [sys.executable, "-c", _SERVE, "serve", "acme/tiny", *flags]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, env=environment(cache, False) | {"ATTEMPTS": str(attempts)}, stdout=log, stderr=log)
    try:
        _wait_until_healthy(process, port, tmp_path / "log")
        body = {"model": "acme/tiny", "prompt": "abc", "max_tokens": 3, "ignore_eos": True}
        answer = httpx.post(f"http://127.0.0.1:{port}/v1/completions", json=body, trust_env=False, timeout=30)
        assert answer.json()["usage"]["completion_tokens"] == 3
    finally:
        process.terminate()
        process.wait(30)
    assert attempts.read_text() == ""


def _wait_until_healthy(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    for _ in range(600):
        assert process.poll() is None, log.read_text()
        try:
            if httpx.get(f"http://127.0.0.1:{port}/health", trust_env=False).status_code == 200:
                return
        except httpx.TransportError:
            pass
        threading.Event().wait(0.1)
    raise AssertionError(log.read_text())


@pytest.mark.e2e
def test_a_server_process_that_cannot_have_its_model_ends_with_the_reason(cache: Path, tmp_path: Path) -> None:
    """Not retried, one line, exit code 1."""
    command = [sys.executable, "-m", "headway.cli.main", "serve", "acme/absent", "--uds", str(tmp_path / "s")]
    run = subprocess.run(command, env=environment(cache, True), capture_output=True, text=True, check=False)
    assert run.returncode == 1
    output = run.stdout + run.stderr
    (line,) = [each for each in output.splitlines() if "The model cannot be served" in each]
    for part in ("acme/absent", str(cache), "hf download acme/absent", "HF_HUB_OFFLINE", "[offline_not_cached]"):
        assert part in line
    assert "Traceback" not in output


@pytest.fixture
def silent_hub() -> Iterator[str]:
    """Takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def test_a_hub_that_never_answers_is_given_up_after_one_wait(
    silent_hub: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("HF_ENDPOINT", silent_hub)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(hub_listing, "SECONDS", 0.2)
    with pytest.raises(ArtifactError, match="hf download acme/absent") as caught:
        inspect("acme/absent", cache_dir=tmp_path)
    assert caught.value.reason == "hub_unreachable"
    assert silent_hub in caught.value.message
    assert "ReadTimeout" in caught.value.message
