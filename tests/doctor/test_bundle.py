"""The archive of a bug report: no secret in any member, prompts only when asked for, each replaced value listed."""

from __future__ import annotations

import base64
import gzip
import zipfile
from pathlib import Path
from typing import Any

import pytest

from headway.doctor.bundle import Bundle, make_bundle
from headway.doctor.bundled_log import bundled_log, without_users_words
from headway.errors import DoctorError

_KEY = "sk-TESTONLY-0123456789abcdef"
_TOKEN = "hf_TESTONLYabcdefghijklmnop"
_CONFIG = f"""providers:
  - name: cloud
    base_url: http://user:pass9word@10.0.0.5/v1
    api_key: {_KEY}
    other:
      api_key: "sk-TESTONLY-first
        secondhalf789"
    folded:
      password: >-
        hunter2hunter
        hunter3hunter
---
apiVersion: v1
kind: Secret
data:
  anything: {base64.b64encode(_KEY.encode()).decode()}
stringData:
  plain: justwords42
"""
_LOG = """INFO 01-02 03:04:05 [api_server.py:10] vLLM API server version 0.11.0
curl -H "Authorization: Bearer abc.DEF-987654" http://user:pass9word@10.0.0.5/v1
vllm serve org/m --api-key secret1one secret2two --port 8000
{"level":"info","headers":{"authorization":"Bearer JSONtoken4711","cookie":"session=cookieval99"}}
INFO Received request cmpl-1: prompt: 'call me at +49 30 1234567', params: SamplingParams(n=1), prompt_token_ids: [77001, 77002]
INFO 01-02 03:04:09 [launcher.py:1] Application startup complete.
"""
_SECRETS = (
    _KEY, _KEY[3:], _TOKEN, "pass9word", "first", "secondhalf789", "hunter2", "hunter3", base64.b64encode(_KEY.encode()).decode(), "justwords42",
    "abc.DEF-987654", "secret1one", "secret2two", "JSONtoken4711", "cookieval99", "envsecret55",
)  # fmt: skip
_WORDS_OF_USERS = ("1234567", "call me", "77001")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "server.log"
    path.write_text(_LOG)
    return path


def context() -> dict[str, Any]:
    return {
        "command": "vllm serve org/m --api-key secret1one secret2two --port 8000",
        "env": {"HF_TOKEN": _TOKEN, "VLLM_API_KEY": "envsecret55", "VLLM_LOGGING_LEVEL": "DEBUG"},
        "files": {"config.yaml": _CONFIG},
        "requests": [{"id": 1, "prompt": "call me at +49 30 1234567", "ttft_cli_s": 0.5}, "odd"],
        "host": {"processes": [{"pid": 1, "command": f"x --hf-token {_TOKEN}"}]},
    }


def bundle(log: Path, **more: Any) -> Bundle:
    return make_bundle(f"it answers with {_KEY}", "password: envsecret55", context(), [log], None, **more)


def test_no_secret_in_any_member(log: Path) -> None:
    made = bundle(log)
    assert set(made.members) == {"report.md", "context.yaml", "doctor.json", "logs/00-server.log"}
    for name, text in made.members.items():
        for secret in _SECRETS:
            assert secret not in text, (name, secret)


def test_what_is_no_secret_stays(log: Path) -> None:
    made = bundle(log)
    assert "10.0.0.5" in made.members["context.yaml"]
    assert "VLLM_LOGGING_LEVEL: DEBUG" in made.members["context.yaml"]
    assert "Application startup complete" in made.members["logs/00-server.log"]
    assert "--port 8000" in made.members["logs/00-server.log"]


def test_no_words_of_users_unless_asked_for(log: Path) -> None:
    text = "\n".join(bundle(log).members.values())
    assert "Received request cmpl-1" in text
    for word in _WORDS_OF_USERS:
        assert word not in text, word
    assert "ttft_cli_s: 0.5" in text
    assert "prompts left out" in text
    assert "1234567" in bundle(log, request_text=True).members["context.yaml"]
    kept = bundle(log, request_text=True).members["logs/00-server.log"]
    assert "call me at" in kept
    assert "secret1one" not in kept


def test_the_check_lists_each_place_without_the_value(log: Path) -> None:
    made = bundle(log)
    listed = [(place.file, place.before) for place in made.masked()]
    for file, before in (
        ("context.yaml", "HF_TOKEN: "),
        ("context.yaml", "VLLM_API_KEY: "),
        ("context.yaml", "--api-key "),
        ("logs/00-server.log", "Authorization: Bearer "),
        ("logs/00-server.log", "--api-key "),
        ("logs/00-server.log", '"cookie":"'),
        ("report.md", "password: "),
    ):
        assert any(name == file and before in seen for name, seen in listed), (file, before)
    assert not any(secret in before for _, before in listed for secret in _SECRETS)
    by_line = made.members["logs/00-server.log"].split("\n")
    assert all("[masked]" in by_line[place.line - 1] for place in made.masked() if place.file.startswith("logs/"))


def test_a_large_log_keeps_both_ends(tmp_path: Path) -> None:
    path = tmp_path / "large.log"
    path.write_text("the first line\n" + ("x" * 99 + "\n") * 400 + "the last line\n")
    text = bundled_log(path, False, 2000, 8000)
    assert text.startswith("the first line\n")
    assert text.endswith("the last line\n")
    [gap] = [entry for entry in text.split("\n") if "bytes left out" in entry]
    assert len(text) - len(gap) - 1 + int(gap.split()[1]) == path.stat().st_size
    assert 9800 < len(text) <= 10_000 + len(gap)
    assert bundled_log(path, False) == path.read_text(), "by default 20 MiB are kept"


def test_the_same_input_gives_the_same_bytes(log: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "a.zip", tmp_path / "b.zip"
    bundle(log).write(first)
    bundle(log).write(second)
    assert first.read_bytes() == second.read_bytes()
    with zipfile.ZipFile(first) as archive:
        assert archive.testzip() is None
        assert archive.read("report.md").decode().startswith("# Bug report")


def test_two_logs_of_one_name(tmp_path: Path) -> None:
    paths = []
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        paths.append(tmp_path / folder / "server.log")
        paths[-1].write_text(f"line of {folder}\n")
    members = make_bundle("", "", {}, paths, None).members
    assert members["logs/00-server.log"] == "line of a\n"
    assert members["logs/01-server.log"] == "line of b\n"


def test_a_log_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DoctorError) as caught:
        make_bundle("", "", {}, [tmp_path / "absent.log"], None)
    assert caught.value.reason == "log_unreadable"


def test_words_over_several_lines() -> None:
    text = (
        "INFO 01-02 03:04:05 [logger.py:39] Received request c-1: prompt: 'my name is\nAnna \"quoted\",\n\nfrom Bonn', params: SamplingParams(n=1)\n"
        "INFO 01-02 03:04:06 [logger.py:39] next line\n"
        "request body: {\n  \"messages\": \"secret wish\"\n}\n"
        "Traceback (most recent call last):\n  File x\nValueError: why\n"
    )
    kept = without_users_words(text)
    for word in ("my name", "Anna", "Bonn", "wish"):
        assert word not in kept, word
    for word in ("Received request c-1", "next line", "File x", "ValueError: why"):
        assert word in kept, word
    assert kept.count("\n") == text.count("\n"), "lines keep their numbers"


@pytest.mark.parametrize("text", ["prompt_token_ids: [1, 22]", '"prompt": [1, 22]', "input_ids=[1,22", "output_token_ids: [22]"])
def test_token_ids_are_words_too(text: str) -> None:
    assert "22" not in without_users_words(f"x {text}")


def test_a_packed_log(tmp_path: Path) -> None:
    path = tmp_path / "server.log.gz"
    path.write_bytes(gzip.compress(_LOG.encode()))
    text = make_bundle("", "", {}, [path], None).members["logs/00-server.log.gz.txt"]
    assert "Application startup complete" in text
    assert "secret1one" not in text
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(DoctorError, match="cannot be read"):
        make_bundle("", "", {}, [path], None)
