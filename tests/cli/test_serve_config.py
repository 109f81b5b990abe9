"""From the words after `headway serve` to the two configurations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headway.cli.serve_config import DEFAULT_MODEL, ServeConfig, engine_arguments, serve_config
from headway.errors import ConfigError, NotBuiltError


def config(*words: str, **environment: str) -> ServeConfig:
    return serve_config(words, environment, lambda sentence: None)


def test_without_words_the_default_model_is_served() -> None:
    found = config()
    assert found.engine.model == DEFAULT_MODEL == "smollm2-135m-instruct"
    assert (found.server.host, found.server.port) == ("127.0.0.1", 8000)


def test_flags_land_in_their_records() -> None:
    found = config("m", "--port", "9", "--dtype", "float32", "--max-model-len", "auto", "--served-model-name", "a", "b", "--api-key", "k")
    assert (found.engine.model, found.engine.dtype, found.engine.max_model_len) == ("m", "float32", -1)
    assert (found.engine.served_model_name, found.server.port, found.server.api_key) == (("a", "b"), 9, ("k",))
    assert config("--model", "m").engine.model == "m"


def test_one_model() -> None:
    for words in (["a", "b"], ["a", "--model", "b"]):
        with pytest.raises(ConfigError) as found:
            config(*words)
        assert found.value.param == "model"


def test_values_that_the_records_refuse() -> None:
    with pytest.raises(ConfigError, match="--block-size must be at least 1, got '0'"):
        config("--block-size", "0")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--api-key", ""], "an API key is empty"), (["--api-key", "a", "--api-key", " "], "an API key is empty"),
        (["--default-chat-template-kwargs", "5"], "must be a JSON object, got int"), (["--custom-histogram-buckets", "[1]"], "must be a JSON object, got list"),
        (["--kv-cache-memory-bytes", "9" * 400 + ".5G"], "a number that memory can have"), (["--max-model-len", "9" * 5000], "a number that memory can have"),
    ],
)  # fmt: skip
def test_values_of_the_right_kind_that_make_no_sense(words: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        config(*words)


def test_keys_from_the_environment_are_no_empty_ones() -> None:
    with pytest.raises(ConfigError, match="an API key is empty"):
        serve_config([], {"VLLM_API_KEY": " "}, lambda sentence: None)


def test_a_file_lies_under_the_command_line(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("model: from-file\nport: 9\nmax_num_seqs: 7\nenable-prefix-caching: false\napi-key: [a, b]\n")
    found = config("--config", str(path), "--port", "10")
    assert (found.engine.model, found.server.port, found.engine.max_num_seqs) == ("from-file", 10, 7)
    assert (found.engine.enable_prefix_caching, found.server.api_key) == (False, ("a", "b"))
    assert config("word", "--config", str(path)).engine.model == "word"


@pytest.mark.parametrize(
    "content",
    ["- a", "a: [", "nope: 1", "enable-expert-parallel: true", "config: x", "api-key:", "api-key: [a, null]", "api-key: {a: 1}", "served-model-name: [[a]]"],
)
def test_files_that_cannot_be_used(tmp_path: Path, content: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(content)
    if content.startswith("config"):
        assert config("--config", str(path)).engine.model == DEFAULT_MODEL
    else:
        with pytest.raises(ConfigError):
            config("--config", str(path))
    with pytest.raises(ConfigError, match="cannot be read"):
        config("--config", str(tmp_path / "missing.yaml"))


def test_the_environment_lies_under_the_flags() -> None:
    environment = {"VLLM_API_KEY": "k", "VLLM_CPU_KVCACHE_SPACE": "0.5", "VLLM_LOG_STATS_INTERVAL": "3", "VLLM_HTTP_TIMEOUT_KEEP_ALIVE": "9"}
    found = config(**environment)
    assert (found.server.api_key, found.server.timeout_keep_alive) == (("k",), 9.0)
    assert (found.engine.kv_cache_memory_bytes, found.engine.log_stats_interval) == (2**29, 3.0)
    found = config("--api-key", "f", "--kv-cache-memory-bytes", "1GiB", **environment)
    assert (found.server.api_key, found.engine.kv_cache_memory_bytes) == (("f",), 2**30)
    with pytest.raises(ConfigError, match="VLLM_CPU_KVCACHE_SPACE must be a number"):
        config(VLLM_CPU_KVCACHE_SPACE="much")


def test_unknown_variables_warn_or_end() -> None:
    said: list[str] = []
    serve_config([], {"VLLM_API_KEYS": "secret"}, said.append)
    assert said == ["Unknown vLLM environment variable detected: VLLM_API_KEYS. Did you mean VLLM_API_KEY?"]
    with pytest.raises(ConfigError, match="VLLM_API_KEYS") as found:
        config("--fail-on-environ-validation", VLLM_API_KEYS="secret")
    assert "secret" not in found.value.message


def test_help_is_asked_before_anything_is_checked() -> None:
    assert config("a", "b", "--help=cache").topic == "cache"


def test_engine_flags_as_arguments_of_llm() -> None:
    found: dict[str, Any] = engine_arguments(["--max-num-seqs", "4", "--no-enable-prefix-caching"], lambda sentence: None)
    assert found == {"max_num_seqs": 4, "enable_prefix_caching": False}
    for words, kind in ((["--port", "1"], ConfigError), (["word"], ConfigError), (["--enable-expert-parallel"], NotBuiltError)):
        with pytest.raises(kind):
            engine_arguments(words, lambda sentence: None)
