"""Format, levels, variables and redaction of the log."""

from __future__ import annotations

import io
import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from headway.errors import ConfigError
from headway.telemetry.logs import configure_logging
from headway.telemetry.redaction import Redactor

LINE = re.compile(r"^\(APIServer pid=\d+\) INFO \d\d-\d\d \d\d:\d\d:\d\d \[test_logs\.py:\d+\] (.*)$")


@pytest.fixture(autouse=True)
def untouched_logging(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name in ("LEVEL", "PREFIX", "CONFIG_PATH", "STREAM"):
        monkeypatch.delenv("VLLM_LOGGING_" + name, raising=False)
    monkeypatch.delenv("VLLM_CONFIGURE_LOGGING", raising=False)
    loggers = [logging.getLogger(name) for name in ("", "headway", "uvicorn", "headway.x")]
    before = [(logger, logger.handlers[:], logger.level, logger.propagate, logger.disabled) for logger in loggers]
    yield
    for logger, handlers, level, propagate, disabled in before:
        logger.handlers[:], logger.propagate, logger.disabled = handlers, propagate, disabled
        logger.setLevel(level)


def logged(message: str, *args: object, **options: object) -> str:
    stream = io.StringIO()
    configure_logging(stream=stream, **options)  # type: ignore[arg-type]
    logging.getLogger("headway.x").info(message, *args)
    return stream.getvalue().rstrip("\n")


def test_the_line_has_the_form_that_tools_parse() -> None:
    found = LINE.match(logged("Using max model len %d", 8192))
    assert found
    assert found[1] == "Using max model len 8192"


def test_calling_twice_does_not_double_the_lines() -> None:
    stream = io.StringIO()
    configure_logging(stream=stream)
    configure_logging(stream=stream)
    logging.getLogger("headway.x").info("once")
    assert stream.getvalue().count("once") == 1


def test_prefix_with_a_percent_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_LOGGING_PREFIX", "[100%s] ")
    assert "[100%s] INFO" in logged("x")


def test_level_from_environment_and_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_LOGGING_LEVEL", "warning")
    assert logged("quiet") == ""
    assert logged("loud", level="debug").endswith("loud")
    monkeypatch.setenv("VLLM_LOGGING_LEVEL", "CHATTY")
    with pytest.raises(ConfigError, match="CHATTY"):
        configure_logging()


def test_logging_can_be_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_CONFIGURE_LOGGING", "0")
    handlers = logging.getLogger("headway").handlers[:]
    configure_logging(stream=io.StringIO())
    assert logging.getLogger("headway").handlers == handlers
    monkeypatch.setenv("VLLM_LOGGING_CONFIG_PATH", "somewhere.json")
    with pytest.raises(ConfigError, match="VLLM_CONFIGURE_LOGGING is 0"):
        configure_logging()


def test_an_own_configuration_replaces_ours_but_not_the_redaction(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    target = tmp_path / "out.log"
    config = {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"bare": {"format": "%(message)s"}},
        "handlers": {"file": {"class": "logging.FileHandler", "filename": str(target), "formatter": "bare"}},
        "loggers": {"headway": {"handlers": ["file"], "level": "INFO", "propagate": False}},
    }
    path = tmp_path / "logging.json"
    path.write_text(json.dumps(config))
    monkeypatch.setenv("VLLM_LOGGING_CONFIG_PATH", str(path))
    configure_logging(secrets=["open-sesame"])
    logging.getLogger("headway.x").info("the key is %s", "open-sesame")
    assert target.read_text() == "the key is ***\n"


@pytest.mark.parametrize("content", ["{", "[]", '{"version": 9}', '{"version": 1, "handlers": {"a": {"class": "no.such"}}}'])
def test_a_broken_configuration_file_is_named(content: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "logging.json"
    path.write_text(content)
    monkeypatch.setenv("VLLM_LOGGING_CONFIG_PATH", str(path))
    with pytest.raises(ConfigError, match=re.escape(str(path))):
        configure_logging()


def test_known_keys_never_appear_not_even_in_tracebacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "s3cret-key")
    stream = io.StringIO()
    configure_logging(stream=stream, secrets=["other-secret"])
    try:
        raise ValueError("bad key s3cret-key")
    except ValueError:
        logging.getLogger("headway.x").exception("while using %s", {"key": "other-secret"})
    text = stream.getvalue()
    assert "ValueError: bad key ***" in text
    assert "s3cret-key" not in text
    assert "other-secret" not in text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Authorization: Bearer abc.DEF-123", "Authorization: Bearer ***"),
        ("token hf_abcdefgh12345678 used", "token hf_*** used"),
        ("sk-proj-1234567890abcdef", "sk-***"),
        ("headway serve m --api-key topsecret --port 1", "headway serve m --api-key *** --port 1"),
        ("--hf-token=topsecret", "--hf-token=***"),
        ("{'api_key': 'topsecret', 'port': 8000}", "{'api_key': '***', 'port': 8000}"),
        ("api_key=['topsecret'], port=1", "api_key=['***'], port=1"),
        ("GET /v1/models?token=topsecret&x=1", "GET /v1/models?token=***&x=1"),
        ("https://user:topsecret@host/path", "https://user:***@host/path"),
        # not secrets
        ("api_key=None, hf_token=None", "api_key=None, hf_token=None"),
        ("max_tokens=16 and prompt tokens: 1200", "max_tokens=16 and prompt tokens: 1200"),
        ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1"),
        ("hf_overrides={}", "hf_overrides={}"),
    ],
)
def test_what_looks_like_a_key_is_masked(text: str, shown: str) -> None:
    assert Redactor()(text) == shown


def test_short_known_secrets_do_not_blank_ordinary_words() -> None:
    assert Redactor(["the"])("the end") == "the end"
