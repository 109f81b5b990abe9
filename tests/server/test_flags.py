"""The tables of flags agree with the records they fill and with the contract."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from headway.cli.serve_config import ALL_FLAGS
from headway.engine.config import EngineConfig
from headway.engine.flags import BUILT_FLAGS
from headway.engine.flags_old import OLD_SPELLINGS
from headway.errors import ConfigError, NotBuiltError
from headway.flags.flag import Flag
from headway.server.flags import SERVER_FLAGS
from headway.server.settings import ServerSettings

ENVIRONMENT_ONLY = {"allow_runtime_lora_updating", "chat_template_render_timeout", "enable_responses_api_store", "lora_folders", "server_dev_mode", "timeout_keep_alive", "trace_function"}
# The flags that the contract (1.2, 1.3) names.
CONTRACT = ["gpu-memory-utilization", "device-memory-utilization", "max-model-len", "quantization", "tensor-parallel-size", "pipeline-parallel-size", "max-num-seqs", "dtype", "enable-prefix-caching", "enable-chunked-prefill", "block-size", "speculative-config", "spec-method", "spec-model", "spec-tokens", "attention-backend", "trust-remote-code", "host", "port", "uvicorn-log-level", "disable-uvicorn-access-log", "disable-access-log-for-endpoints", "allow-credentials", "allowed-origins", "allowed-methods", "allowed-headers", "api-key", "ssl-keyfile", "ssl-certfile", "ssl-ca-certs", "ssl-cert-reqs", "ssl-ciphers", "root-path", "middleware", "enable-request-id-headers", "disable-fastapi-docs", "uds", "h11-max-incomplete-event-size", "h11-max-header-count", "served-model-name", "chat-template", "chat-template-content-format", "default-chat-template-kwargs", "trust-request-chat-template", "response-role", "return-tokens-as-token-ids", "max-log-len", "enable-log-requests", "enable-log-outputs", "disable-log-stats", "enable-prompt-tokens-details", "enable-per-request-metrics", "enable-server-load-tracking", "enable-force-include-usage", "sse-keep-alive-interval", "enable-tokenizer-info-endpoint", "enable-auto-tool-choice", "tool-call-parser", "tool-parser-plugin", "exclude-tools-when-tool-choice-none", "reasoning-parser", "lora-modules", "tool-server", "fingerprint-mode", "log-error-stack", "api-server-count", "headless", "shutdown-timeout", "tokenizer", "tokenizer-mode", "skip-tokenizer-init", "revision", "code-revision", "tokenizer-revision", "hf-config-path", "hf-overrides", "hf-token", "config-format", "load-format", "download-dir", "safetensors-load-strategy", "ignore-patterns", "generation-config", "override-generation-config", "seed", "max-logprobs", "logprobs-mode", "enforce-eager", "runner", "convert", "model-impl", "logits-processors", "enable-sleep-mode", "pooler-config", "disable-sliding-window", "disable-cascade-attn", "kv-cache-dtype", "kv-cache-memory-bytes", "num-gpu-blocks-override", "prefix-caching-hash-algo", "kv-offloading-size", "kv-offloading-backend", "cpu-offload-gb", "max-num-batched-tokens", "max-num-queued-reqs", "max-num-queued-tokens", "long-prefill-token-threshold", "scheduling-policy", "watermark", "async-scheduling", "stream-interval", "scheduler-cls", "disable-hybrid-kv-cache-manager", "scheduler-reserve-full-isl", "prefill-schedule-interval", "distributed-executor-backend", "data-parallel-size", "data-parallel-rank", "data-parallel-size-local", "data-parallel-address", "data-parallel-rpc-port", "data-parallel-backend", "data-parallel-hybrid-lb", "data-parallel-external-lb", "enable-expert-parallel", "nnodes", "node-rank", "master-addr", "master-port", "distributed-timeout-seconds", "disable-custom-all-reduce", "max-parallel-loading-workers", "numa-bind", "device-ids", "enable-lora", "max-loras", "max-lora-rank", "max-cpu-loras", "lora-dtype", "fully-sharded-loras", "structured-outputs-config", "compilation-config", "optimization-level", "performance-mode", "kv-transfer-config", "kv-events-config", "profiler-config", "otlp-traces-endpoint", "log-level", "log-config-file", "show-hidden-metrics-for-version", "custom-histogram-buckets", "config", "fail-on-environ-validation", "model"]
SHORT = {"-q", "-tp", "-pp", "-dp", "-sc", "-ac", "-cc", "-n", "-r", "-asc"}
SEED = {"speculative-model", "num-speculative-tokens", "speculative-method", "disable-flash-attn"}


def test_every_flag_of_the_contract_is_known() -> None:
    known = {flag.name for flag in ALL_FLAGS} | {alias for flag in ALL_FLAGS for alias in flag.aliases}
    assert [name for name in CONTRACT if name not in known] == []
    assert known >= SHORT
    assert OLD_SPELLINGS.keys() >= SEED


def test_spellings_are_unique() -> None:
    spellings = [s for flag in ALL_FLAGS for s in (flag.name, *flag.aliases)] + [*OLD_SPELLINGS]
    assert len(set(spellings)) == len(spellings)


@pytest.mark.parametrize(
    ("flags", "record", "without"),
    [(BUILT_FLAGS, EngineConfig, {"model"}), (tuple(f for f in SERVER_FLAGS if f.is_built), ServerSettings, ENVIRONMENT_ONLY)],
)
def test_built_flags_are_the_fields_with_the_same_defaults(flags: tuple[Flag, ...], record: Any, without: set[str]) -> None:
    fields = {f.name: f for f in dataclasses.fields(record) if f.name not in without}
    assert {f.dest for f in flags} == fields.keys()
    for flag in flags:
        field = fields[flag.dest]
        default = field.default_factory() if field.default is dataclasses.MISSING else field.default  # type: ignore[misc]
        assert flag.default == default, flag.name


@pytest.mark.parametrize("flag", ALL_FLAGS, ids=lambda flag: flag.name)
def test_rows_are_complete(flag: Flag) -> None:
    assert flag.help.endswith(".")
    assert flag.group
    assert [flag.refused, flag.note, flag.feature].count(None) >= 2
    assert not (flag.choices and flag.default is not None) or flag.default in flag.choices
    flag.check_value(flag.default)


def named(name: str) -> Flag:
    return next(flag for flag in ALL_FLAGS if flag.name == name)


def test_what_is_not_built_says_so() -> None:
    with pytest.raises(NotBuiltError) as found:
        named("data-parallel-size").check_value(2)
    message = "--data-parallel-size is not built yet: this version has no data parallelism (planned: Distributed)"
    assert found.value.message == f"{message}. Leave it out, or use 1."
    with pytest.raises(NotBuiltError):
        named("enable-expert-parallel").check_value(True)


def test_remote_code_is_refused_with_the_alternative() -> None:
    with pytest.raises(ConfigError, match=r"never run.*headway inspect") as found:
        named("trust-remote-code").check_value(True)
    assert found.value.reason == "flag_refused"
    named("trust-remote-code").check_value(False)


NUMBERS = [flag for flag in ALL_FLAGS if flag.is_built and flag.kind in ("int", "float", "size")]


@pytest.mark.parametrize("flag", NUMBERS, ids=lambda flag: flag.name)
def test_every_number_says_what_it_may_be(flag: Flag) -> None:
    assert flag.span is not None
    assert flag.default is None or flag.default in flag.span
    outside = str(flag.span.low - 2 if isinstance(flag.span.low, int) else -1)
    with pytest.raises(ConfigError, match=f"--{flag.name} must be .*, got '{outside}'"):
        flag.read(outside)
    if flag.kind == "float":
        for text in ("nan", "inf", "-inf", "1e999"):
            with pytest.raises(ConfigError, match=f"--{flag.name} must be"):
                flag.read(text)


@pytest.mark.parametrize(
    ("name", "text"),
    [("port", "65536"), ("watermark", "1"), ("watermark", "2"), ("gpu-memory-utilization", "0"), ("gpu-memory-utilization", "1.01"),
     ("ssl-cert-reqs", "3"), ("log-stats-interval", "0"), ("request-timeout", "1e18"), ("max-model-len", "1"), ("stream-interval", "0")],
)  # fmt: skip
def test_both_ends_of_spans_hold(name: str, text: str) -> None:
    with pytest.raises(ConfigError, match=f"--{name} must be"):
        named(name).read(text)
