"""Servers that do not start: memory, files, formats, ports."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from tests.doctor.live.diagnosed import doctor, first, fixes, serve_log
from tests.e2e.tiny_model import tiny_model
from tests.e2e.tiny_server import free_port, tiny_server


def test_memory_too_small_for_the_context(tmp_path: Path) -> None:
    log = serve_log(tmp_path, tiny_model(tmp_path), "--port", str(free_port()), "--kv-cache-memory-bytes", "20000")
    finding = first(doctor("log", str(log)))
    assert finding["rule"] == "O2"
    fits = next(fix["command"] for fix in finding["fixes"] if "--max-model-len" in (fix["command"] or ""))
    length = int(fits.rsplit("--max-model-len", 1)[1].split()[0])
    with tiny_server(tmp_path, "--kv-cache-memory-bytes", "20000", "--max-model-len", str(length)) as served:
        assert served.get("/health").status_code == 200, "the fix that was proposed helps"


def test_a_truncated_file(tmp_path: Path) -> None:
    model = tiny_model(tmp_path)
    weights = model / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    finding = first(doctor("log", str(serve_log(tmp_path, model, "--port", str(free_port())))))
    assert finding["rule"] == "L7"
    assert any("model.safetensors" in quote["text"] for quote in finding["evidence"])


def test_a_missing_tokenizer(tmp_path: Path) -> None:
    model = tiny_model(tmp_path)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (model / name).unlink()
    finding = first(doctor("log", str(serve_log(tmp_path, model, "--port", str(free_port())))))
    assert finding["rule"] == "L6"
    assert "tokenizer" in fixes(finding)


def test_gguf_weights_with_the_flag_of_another_format(tmp_path: Path) -> None:
    finding = first(doctor("log", str(serve_log(tmp_path, "smollm2-135m-instruct", "--port", str(free_port()), "--quantization", "awq"))))
    assert finding["rule"] == "Q1"
    assert "--quantization" in finding["cause"] + fixes(finding)


@pytest.mark.parametrize("known_by", ["log", "net"])
def test_a_port_that_is_taken(tmp_path: Path, known_by: str) -> None:
    with socket.socket() as owner:
        owner.bind(("127.0.0.1", 0))
        owner.listen()
        port = owner.getsockname()[1]
        log = serve_log(tmp_path, tiny_model(tmp_path), "--port", str(port))
        if known_by == "log":
            finding = first(doctor("log", str(log)))
        else:
            config = tmp_path / "start.sh"
            config.write_text(f"headway serve {tmp_path / 'tiny'} --port {port}\n")
            finding = first(doctor("config", str(config)))
        assert finding["rule"] == "N18"
        assert str(port) in finding["cause"]
