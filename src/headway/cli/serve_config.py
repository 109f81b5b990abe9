"""From the words after `headway serve` to the engine's and the server's configuration."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from headway.cli.flag_index import FlagIndex
from headway.cli.launch_fields import launch_fields
from headway.cli.parse import Parsed, Warn, parse_words, values_from_file
from headway.engine.config import SPANS, EngineConfig
from headway.engine.flags import ENGINE_FLAGS
from headway.errors import ConfigError
from headway.flags.environment import idle_variables, is_on, unknown_variables
from headway.flags.flag import Flag
from headway.flags.span import Span
from headway.server.flags import SECONDS, SERVER_FLAGS
from headway.server.settings import ServerSettings

DEFAULT_MODEL = "smollm2-135m-instruct"
COMMAND_FLAGS: tuple[Flag, ...] = (
    Flag(
        "model",
        "text",
        None,
        f"The model, when it is not given as a word; {DEFAULT_MODEL} when it is not given at all.",
        "Command",
    ),
    Flag(
        "config", "text", None, "YAML file whose keys are long flags without dashes; flags given here win.", "Command"
    ),
    Flag("headless", "bool", False, "Compute only, without HTTP: for a --node-rank above 0, which means it anyway.", "Command"),
    Flag(
        "fail-on-environ-validation", "bool", False, "Unknown VLLM_* variables are an error, not a warning.", "Command"
    ),
)
ALL_FLAGS: tuple[Flag, ...] = (*COMMAND_FLAGS, *SERVER_FLAGS, *ENGINE_FLAGS)
_GIB = 2**30
_GIBS = Span(0, 2**20)


@dataclass(frozen=True, slots=True)
class ServeConfig:
    engine: EngineConfig
    server: ServerSettings
    topic: str | None = None  # help was asked for: nothing else counts


def serve_config(words: Sequence[str], environment: Mapping[str, str], warn: Warn) -> ServeConfig:
    """Flags win over the config file, both over the environment. Raises ConfigError, NotBuiltError."""
    index = FlagIndex(ALL_FLAGS)
    parsed = parse_words(words, index, warn)
    if parsed.topic is not None:
        return ServeConfig(EngineConfig(DEFAULT_MODEL), ServerSettings(), topic=parsed.topic)
    from_file = _read_file(parsed.values["config"], index, warn) if "config" in parsed.values else {}
    values = {**from_file, **parsed.values}
    unknown = unknown_variables(environment)
    if unknown and values.get("fail-on-environ-validation"):
        raise ConfigError("; ".join(unknown), reason="unknown_variable", fix="Unset them.")
    for sentence in (*unknown, *idle_variables(environment)):
        warn(sentence)
    by_dest = {name.replace("-", "_"): value for name, value in values.items()}
    by_dest |= launch_fields(by_dest, environment, warn)
    if by_dest.get("headless") and not by_dest.get("node_rank"):
        raise ConfigError("--headless is for nodes with a number above 0: node 0 answers HTTP", param="headless", fix="Give this node its --node-rank, or leave --headless out.")
    return ServeConfig(
        engine=EngineConfig(
            model=_model(parsed, values), **_fields(EngineConfig, by_dest, _engine_environment(environment))
        ),
        server=ServerSettings(**_fields(ServerSettings, by_dest, _server_environment(environment))),
    )


def engine_arguments(words: Sequence[str], warn: Warn) -> dict[str, Any]:
    """Engine flags alone, as keyword arguments of LLM; for commands that run the engine in their own process.

    Raises ConfigError for words that are no engine flags.
    """
    parsed = parse_words(words, FlagIndex(ENGINE_FLAGS), warn)
    if parsed.words:
        raise ConfigError(f"Unexpected word {parsed.words[0][:100]!r}", param="arguments")
    return {name.replace("-", "_"): value for name, value in parsed.values.items()}


def _fields(record: type[Any], given: Mapping[str, Any], environment: Mapping[str, Any]) -> dict[str, Any]:
    names = {f.name for f in dataclasses.fields(record)} - {"model"}
    return {name: value for name, value in {**environment, **given}.items() if name in names}


def _model(parsed: Parsed, values: Mapping[str, Any]) -> str:
    if len(parsed.words) > 1:
        raise ConfigError(
            f"One model can be served, got the words {', '.join(w[:60] for w in parsed.words[:4])}", param="model"
        )
    if parsed.words and "model" in parsed.values:
        raise ConfigError("The model is given twice, as a word and as --model", param="model", fix="Keep one of them.")
    return parsed.words[0] if parsed.words else values.get("model") or DEFAULT_MODEL


def _read_file(path: str, index: FlagIndex, warn: Warn) -> dict[str, Any]:
    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as e:
        raise ConfigError(f"--config {path!r} cannot be read: {e}", param="config") from e
    if not isinstance(content, dict):
        raise ConfigError(
            f"--config {path!r} holds a {type(content).__name__}, expected keys and values", param="config"
        )
    return values_from_file(content, index, warn)


def _engine_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    if space := environment.get("VLLM_CPU_KVCACHE_SPACE"):
        out["kv_cache_memory_bytes"] = int(_number("VLLM_CPU_KVCACHE_SPACE", space, _GIBS) * _GIB) or None
    if interval := environment.get("VLLM_LOG_STATS_INTERVAL"):
        out["log_stats_interval"] = _number("VLLM_LOG_STATS_INTERVAL", interval, SPANS["log_stats_interval"])
    return out


def _server_environment(environment: Mapping[str, str]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    if key := environment.get("VLLM_API_KEY"):
        out["api_key"] = (key,)
    if environment.get("VLLM_SERVER_DEV_MODE", "0").strip() not in ("", "0"):
        out["server_dev_mode"] = True
    for name, setting in (
        ("VLLM_HTTP_TIMEOUT_KEEP_ALIVE", "timeout_keep_alive"),
        ("VLLM_EXECUTE_MODEL_TIMEOUT_SECONDS", "health_stall_seconds"),
        ("VLLM_CHAT_TEMPLATE_RENDER_TIMEOUT", "chat_template_render_timeout"),
    ):
        if seconds := environment.get(name):
            out[setting] = _number(name, seconds, SECONDS)
    if is_on(environment, "VLLM_ENABLE_RESPONSES_API_STORE"):
        out["enable_responses_api_store"] = True
    if is_on(environment, "VLLM_ALLOW_RUNTIME_LORA_UPDATING"):
        out["allow_runtime_lora_updating"] = True
    if folders := environment.get("HEADWAY_LORA_FOLDERS"):
        out["lora_folders"] = tuple(folder for folder in folders.split(os.pathsep) if folder)
    if is_on(environment, "VLLM_TRACE_FUNCTION"):
        out["trace_function"] = True
    return out


def _number(name: str, text: str, span: Span) -> float:
    try:
        number = float(text)
    except ValueError:
        raise ConfigError(f"{name} must be a number, got {text[:40]!r}", param=name) from None
    if number not in span:
        raise ConfigError(f"{name} must be {span}, got {text[:40]!r}", param=name)
    return number
