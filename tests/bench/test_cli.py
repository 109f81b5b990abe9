"""`headway bench` as it is typed: both spellings, what is printed, what is refused."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

import headway.bench.tokenizer
import headway.engine.llm
from headway.bench.offline import GenerationFailedError
from headway.cli.bench import bench_group
from headway.errors import ConfigError, NotBuiltError
from tests.bench.scripted_server import ScriptedServer, serving
from tests.bench.test_serve import STREAM
from tests.bench.word_tokenizer import WordTokenizer


class FakeLLM:
    """Generates as many tokens as asked for, at once, and remembers how it was called."""

    made: dict[str, Any]
    calls: list[tuple[list[Any], list[Any]]]
    finish_reason = "length"

    def __init__(self, model: str, **arguments: Any):
        FakeLLM.made, FakeLLM.calls = {"model": model, **arguments}, []

    def generate(self, prompts: list[Any], params: list[Any], *, use_tqdm: bool) -> list[Any]:
        FakeLLM.calls.append((prompts, params))
        return [
            SimpleNamespace(
                prompt_token_ids=prompt["prompt_token_ids"],
                outputs=[SimpleNamespace(token_ids=[7] * p.max_tokens, finish_reason=self.finish_reason)] * p.n,
            )
            for prompt, p in zip(prompts, params, strict=True)
        ]


@pytest.fixture(autouse=True)
def without_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setenv("VLLM_CONFIGURE_LOGGING", "0")
    monkeypatch.delenv("SAVE_TO_PYTORCH_BENCHMARK_FORMAT", raising=False)
    monkeypatch.setattr(headway.bench.tokenizer, "prompt_tokenizer", lambda reference: WordTokenizer())
    monkeypatch.setattr(headway.engine.llm, "LLM", FakeLLM)
    monkeypatch.setattr(FakeLLM, "finish_reason", "length")


def bench(*words: str) -> Result:
    return CliRunner().invoke(bench_group, words)


@contextmanager
def running(server: ScriptedServer) -> Iterator[ScriptedServer]:
    """The scripted server on a thread of its own."""
    up, loop = threading.Event(), asyncio.new_event_loop()
    done = asyncio.Event()

    async def serve() -> None:
        async with serving(server):
            up.set()
            await done.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    assert up.wait(10)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(done.set)
        thread.join(10)
        loop.close()


@pytest.mark.parametrize(("inputs", "outputs"), [("--input-len", "--output-len"), ("--input-tokens", "--output-tokens"), ("--random_input_len", "--output_len")])
def test_throughput_takes_both_spellings_and_engine_flags(inputs: str, outputs: str, tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    done = bench(
        "throughput", "--model", "m", "--num-prompts", "3", inputs, "10", outputs, "4", "--n", "2", "--output-json", str(path),
        "--dtype", "float32", "--max-num-seqs=7", "--no-enable-prefix-caching",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert FakeLLM.made == {"model": "m", "dtype": "float32", "max_num_seqs": 7, "enable_prefix_caching": False}
    [(prompts, params)] = FakeLLM.calls
    assert [len(p["prompt_token_ids"]) for p in prompts] == [10, 10, 10]
    assert {(p.max_tokens, p.n, p.ignore_eos) for p in params} == {(4, 2, True)}
    first, second, third = done.output.splitlines()[-3:]
    assert first.startswith("Throughput: ")
    assert [word for word in first.split() if not word[0].isdigit()] == ["Throughput:", "requests/s,", "total", "tokens/s,", "output", "tokens/s"]
    assert (second, third) == ("Total num prompt tokens:  30", "Total num output tokens:  24")
    record = json.loads(path.read_text())
    assert list(record) == ["model_id", "elapsed_time", "num_requests", "total_num_tokens", "requests_per_second", "tokens_per_second"]
    assert (record["num_requests"], record["total_num_tokens"]) == (3, 54)


def test_warmups_are_not_counted_and_the_pytorch_file_comes_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SAVE_TO_PYTORCH_BENCHMARK_FORMAT", "1")
    path = tmp_path / "out.json"
    assert bench("throughput", "--num-prompts", "4", "--num-warmups", "3", "--output-json", str(path)).exit_code == 0
    assert [len(prompts) for prompts, _ in FakeLLM.calls] == [3, 4]
    assert json.loads(path.read_text())["num_requests"] == 4
    rows = json.loads(path.with_suffix(".pytorch.json").read_text())
    assert {row["metric"]["name"] for row in rows} == {"requests_per_second", "tokens_per_second"}


def test_a_failed_sequence_is_no_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeLLM, "finish_reason", "error")
    assert isinstance(bench("throughput", "--num-prompts", "1").exception, GenerationFailedError)


def test_latency(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    done = bench("latency", "--input-tokens", "5", "--output-tokens", "3", "--batch-size", "2", "--num-iters", "4", "--num-iters-warmup", "1", "--output-json", str(path))
    assert done.exit_code == 0, done.output
    assert len(FakeLLM.calls) == 5
    assert [len(p["prompt_token_ids"]) for p in FakeLLM.calls[0][0]] == [5, 5]
    lines = done.output.splitlines()[-7:]
    assert lines[0].startswith("Avg latency: ")
    assert lines[0].endswith(" seconds")
    assert [line.split(":")[0] for line in lines[1:]] == [f"{p}% percentile latency" for p in (10, 25, 50, 75, 90, 99)]
    record = json.loads(path.read_text())
    assert list(record) == ["model_id", "avg_latency", "latencies", "percentiles"]
    assert len(record["latencies"]) == 4
    assert set(record["percentiles"]) == {"10", "25", "50", "75", "90", "99"}


def test_serve_from_the_first_word_to_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with running(ScriptedServer(STREAM)) as server:
        done = bench(
            "serve", "--base-url", server.url, "--num-prompts", "3", "--input-len", "4", "--output-tokens", "3", "--ignore-eos",
            "--goodput", "ttft:60000", "e2el:60000", "--percentile-metrics", "ttft,e2el", "--metric-percentiles", "50,99",
            "--metadata", "host=here", "kind=test", "--extra-body", '{"top_k": 5}', "--header", "X-Team=a",
            "--save-detailed", "--result-dir", str(tmp_path), "--result-filename", "r.json", "--disable-tqdm", "--num-warmups", "1",
        )  # fmt: skip
    assert done.exit_code == 0, done.output
    for shown in ("Serving Benchmark Result", "Request goodput (req/s):", "P50 TTFT (ms):", "P99 E2EL (ms):"):
        assert shown in done.output
    assert "Inter-token" not in done.output
    assert len(server.bodies) == 5, "ready check, warm-up and three"
    assert server.bodies[-1] | {"prompt": ""} == {
        "model": "scripted", "prompt": "", "max_tokens": 3, "stream": True, "stream_options": {"include_usage": True},
        "temperature": 0.0, "ignore_eos": True, "top_k": 5,
    }  # fmt: skip
    assert server.headers[-1]["Authorization"] == "Bearer k"
    assert server.headers[-1]["X-Team"] == "a"
    record = json.loads((tmp_path / "r.json").read_text())
    assert (record["completed"], record["host"], record["kind"], record["request_rate"]) == (3, "here", "test", "inf")
    assert len(record["ttfts"]) == 3


def test_serve_fails_when_nothing_was_answered() -> None:
    with running(ScriptedServer([{"error": {"message": "boom"}}])) as server:
        done = bench("serve", "--base-url", server.url, "--model", "m", "--num-prompts", "2", "--ready-check-timeout-sec", "0")
    assert done.exit_code == 1
    assert "boom" in done.output


@pytest.mark.parametrize(
    ("words", "error", "told"),
    [
        (("throughput", "--dataset-name", "hf"), NotBuiltError, "hf"),
        (("throughput", "--lora-path", "x"), NotBuiltError, "--lora-path"),
        (("latency", "--use-beam-search"), NotBuiltError, "--use-beam-search"),
        (("serve", "--plot-timeline"), NotBuiltError, "--plot-timeline"),
        (("serve", "--backend", "vllm-rerank"), NotBuiltError, "vllm-rerank"),
        (("throughput", "--backend", "steam"), ConfigError, "steam"),
        (("throughput", "--async-engine", "--prequeue-requests"), ConfigError, "--async-engine"),
        (("throughput", "--sonnet-input-len", "9"), ConfigError, "--sonnet-input-len has no effect"),
        (("throughput", "--dataset-name", "sharegpt", "--input-len", "9"), ConfigError, "--input-len has no effect"),
        (("throughput", "--no-such-flag", "9"), ConfigError, "no-such-flag"),
        (("serve", "--goodput", "ttft"), ConfigError, "NAME:VALUE"),
        (("serve", "--goodput", "mood:1"), ConfigError, "mood"),
        (("serve", "--metric-percentiles", "101"), ConfigError, "101"),
        (("serve", "--percentile-metrics", "mood"), ConfigError, "mood"),
        (("serve", "--extra-body", "[]"), ConfigError, "object"),
        (("serve", "--request-rate", "0"), ConfigError, "--request-rate"),
        (("serve", "--max-concurrency", "0"), ConfigError, "--max-concurrency"),
    ],
)
def test_what_is_refused(words: tuple[str, ...], error: type[Exception], told: str) -> None:
    found = bench(*words).exception
    assert type(found) is error
    assert told in str(found)


@pytest.mark.parametrize("command", ["throughput", "latency", "serve"])
def test_help_names_the_options(command: str) -> None:
    shown = bench(command, "--help").output
    assert "--output-len" in shown
    assert "--use-beam-search" not in shown
