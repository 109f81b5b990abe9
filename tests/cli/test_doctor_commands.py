"""The doctor's commands as people type them: exit status, JSON, languages, what is no valid input."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest

from headway.cli.main import run
from tests.doctor.collect.web import answering

SCRAPES = Path(__file__).parents[1] / "doctor" / "scrapes"
MODELS = (200, json.dumps({"data": [{"id": "m"}]}))


def call(capfd: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = 0
    try:
        run("headway", ["doctor", *map(str, words)])
    except SystemExit as end:
        code = int(end.code or 0)
    out, err = capfd.readouterr()
    return code, out, err


def like_vllm(name: str = "healthy-1") -> dict[str, Any]:
    return {"/health": (200, ""), "/v1/models": MODELS, "/metrics": (200, (SCRAPES / f"{name}.prom").read_text())}


def test_a_healthy_server(capfd: pytest.CaptureFixture[str]) -> None:
    with answering(like_vllm()) as url:
        code, out, _ = call(capfd, "serve", url, "--seconds", 1, "--requests", 0, "--lang", "en")
        assert code == 0
        assert "health 200 · model m · running 4.0" in out
        code, out, _ = call(capfd, "serve", url, "--seconds", 1, "--requests", 0, "--lang", "zh")
        assert code == 0
        assert "健康检查 200" in out


def test_a_full_cache(capfd: pytest.CaptureFixture[str]) -> None:
    with answering(like_vllm("preempting-2")) as url:
        code, out, _ = call(capfd, "serve", url, "--seconds", 1, "--requests", 0, "--json")
    assert code == 1
    assert json.loads(out)["findings"][0]["rule"] == "T2"


def test_a_server_that_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with answering({"/health": lambda handler: time.sleep(1.2)}) as url:
        code, out, _ = call(capfd, "serve", url, "--timeout", 1, "--json")
    assert code == 2
    assert "gave no answer in time" in json.loads(out)["abstained"][0]


def test_an_engine_that_stands_still_behind_a_healthy_health(capfd: pytest.CaptureFixture[str]) -> None:
    with answering({**like_vllm(), "/v1/completions": lambda handler: time.sleep(1.5)}) as url:
        code, out, _ = call(capfd, "serve", url, "--timeout", 1, "--seconds", 1, "--json")
    assert code == 1
    finding = json.loads(out)["findings"][0]
    assert finding["rule"] == "N16"
    assert url in finding["verify"]


def test_nobody_there(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = call(capfd, "serve", "127.0.0.1:1", "--json")
    assert code == 1
    assert json.loads(out)["findings"][0]["rule"] == "N1"
    code, out, _ = call(capfd, "router", "127.0.0.1:1", "--management", "127.0.0.1:2", "--metrics", "127.0.0.1:3", "--json")
    assert code == 1
    report = json.loads(out)
    assert [step["ok"] for step in report["steps"]] == [False, None]
    assert report["findings"][0]["title"] == "Connection refused", "nothing shows that it is loading"


@pytest.mark.parametrize(
    "words",
    [
        ("serve", "a::::"),
        ("net", "host:port"),
        ("config", "absent.sh"),
        ("collect", "--pid", "1"),
        ("collect", "--command", "ls -l"),
        ("log", "absent.log"),
        ("report", "absent.log", "--context", "absent.yaml"),
        ("serve", "127.0.0.1:1", "--sample", "absent.jsonl"),
    ],
)
def test_wrong_input_is_status_2_and_a_line_with_the_fix(capfd: pytest.CaptureFixture[str], words: tuple[str, ...]) -> None:
    code, out, err = call(capfd, *words)
    assert code == 2
    assert out == ""
    assert err.startswith("headway: ")
    assert err.count("\n") == 1


def test_a_file_of_flags_nobody_knows(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "start.sh").write_text("headway serve m --speculative-model x --max-modl-len 4\n")
    code, out, _ = call(capfd, "config", tmp_path / "start.sh", "--elsewhere", "--json")
    assert code == 1
    report = json.loads(out)
    assert "--max-model-len" in report["refused"]
    assert "--spec-model" in report["remarks"][0]
    code, out, _ = call(capfd, "config", tmp_path / "start.sh", "--elsewhere", "--lang", "zh")
    assert code == 1
    assert "启动会被拒绝" in out


def test_what_is_collected_is_read_back(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    context, log = tmp_path / "context.yaml", tmp_path / "a.log"
    log.write_text("INFO 11-30 06:26:12 [run.py:119] Application startup complete.\n")
    code, out, _ = call(capfd, "collect", "--command", "headway serve smollm2-135m-instruct --api-key s3cret", "-o", context)
    assert code == 0
    assert str(context) in out
    assert "s3cret" not in context.read_text()
    assert call(capfd, "log", log, "--context", context)[0] == 0


def test_a_report_and_its_check(capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_TOKEN", "hf_TESTONLYabcdefghijkl")
    (tmp_path / "a.log").write_text("password=hunter2x\n")
    code, out, _ = call(capfd, "report", "a.log", "--command", "headway serve m", "--check")
    assert code == 0
    assert "masked  logs/00-a.log:1" in out
    assert "masked  context.yaml" in out
    assert not (tmp_path / "headway-report.zip").exists()
    code, out, _ = call(capfd, "report", "a.log", "--command", "headway serve m", "--json")
    assert code == 0
    assert json.loads(out)["archive"] == "headway-report.zip"
    with zipfile.ZipFile(tmp_path / "headway-report.zip") as archive:
        assert all(b"hunter2x" not in archive.read(name) and b"TESTONLY" not in archive.read(name) for name in archive.namelist())


@pytest.mark.timeout(300)
def test_a_live_view_in_a_terminal_ends_with_the_report() -> None:
    """Ctrl-C ends the looking, not the answer."""
    with answering(like_vllm()) as url:
        parent, child = pty.openpty()
        words = [sys.executable, "-m", "headway.cli.main", "doctor", "serve", url, "--watch", "--requests", "0", "--seconds", "600", "--lang", "en"]
        process = subprocess.Popen(words, stdin=child, stdout=child, stderr=child, env={**os.environ, "TERM": "xterm", "COLUMNS": "120"}, start_new_session=True)
        os.close(child)
        shown = b""
        try:
            while b"KV cache %" not in shown or b"4.0" not in shown:  # a first sample was drawn
                shown += os.read(parent, 4096)
            process.send_signal(signal.SIGINT)
            while piece := _rest(parent):
                shown += piece
            assert process.wait(20) == 0, shown.decode()
        finally:
            process.kill()
            process.wait(10)
            os.close(parent)
    assert "Nothing wrong was found" in shown.decode("utf-8", "replace")


def _rest(parent: int) -> bytes:
    try:
        return os.read(parent, 4096)
    except OSError:
        return b""


_HEAVY = ("torch", "transformers", "numpy", "fastapi", "uvicorn", "scipy", "rich", "httpx", "psutil")
_IMPORTED = """
import sys
from headway.cli.main import run
try:
    run("headway", sys.argv[1:])
except SystemExit:
    pass
print("|".join(sorted({name.split(".")[0] for name in sys.modules})), file=sys.stderr)
"""


@pytest.mark.parametrize("words", [("doctor", "--help"), ("doctor", "serve", "--help"), ("doctor", "config", "--help"), ("tune", "--help")])
def test_help_comes_without_heavy_libraries(words: tuple[str, ...]) -> None:
    done = subprocess.run([sys.executable, "-c", _IMPORTED, *words], capture_output=True, text=True, check=True)
    assert "Usage:" in done.stdout
    assert set(done.stderr.strip().splitlines()[-1].split("|")).isdisjoint(_HEAVY)
