"""The load generator against a real socket: what counts as a token, what is sent, what is recorded."""

from __future__ import annotations

import asyncio
import json
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from headway.bench.arrivals import Arrivals
from headway.bench.measures import Exchange, summarize
from headway.bench.openai_client import Target, default_endpoint, token_text
from headway.bench.prompts import Prompt
from headway.bench.serve import LoadPlan, ServerUnreachableError, first_model, run_load
from headway.bench.serve_report import Conditions, result, result_path, save, table
from headway.errors import ConfigError, NotBuiltError
from tests.bench.scripted_server import ScriptedServer, serving
from tests.bench.word_tokenizer import WordTokenizer

WORDS = WordTokenizer()
PROMPT = Prompt(" w11 w12", (11, 12), 3)
NOW = datetime(2026, 11, 29, 12, 30, 5)


def piece(text: str, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "text": text, "finish_reason": None, **more}]}


def chat_piece(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


USAGE = {"choices": [], "usage": {"prompt_tokens": 2, "completion_tokens": 3, "total_tokens": 5}}
STREAM = [None, piece(" w11"), None, piece(""), None, piece(" w12"), piece("", finish_reason="length"), USAGE, "[DONE]"]


def load(server: ScriptedServer, count: int = 1, backend: str = "openai", plan: LoadPlan | None = None, **target: Any) -> list[Exchange]:
    async def run() -> list[Exchange]:
        async with serving(server):
            where = Target(server.url, backend, "m", default_endpoint(backend), **target)
            return (await run_load(where, [PROMPT] * count, plan or LoadPlan(Arrivals(), ready_timeout=0), WORDS))[0]

    return asyncio.run(run())


def test_frames_become_ttft_and_gaps() -> None:
    [done] = load(ScriptedServer(STREAM), body={"temperature": 0.5}, headers={"X-Test": "1"})
    assert done.ok
    assert done.text == " w11 w12"
    assert (done.prompt_tokens, done.output_tokens) == (2, 3)
    assert len(done.itls) == 2, "the empty text is a token, the closing frame is not"
    assert done.ttft >= 0.02
    assert min(done.itls) >= 0.015
    assert done.latency == pytest.approx(done.ttft + sum(done.itls))


def test_what_is_sent() -> None:
    server = ScriptedServer(STREAM)
    load(server, body={"ignore_eos": True}, headers={"Authorization": "Bearer k"})
    assert server.bodies == [
        {"model": "m", "prompt": PROMPT.text, "max_tokens": 3, "stream": True, "stream_options": {"include_usage": True}, "ignore_eos": True}
    ]
    assert server.headers[0]["Authorization"] == "Bearer k"
    chat = ScriptedServer([chat_piece(content="x"), "[DONE]"])
    load(chat, backend="openai-chat")
    assert chat.bodies[0]["messages"] == [{"role": "user", "content": PROMPT.text}]
    assert chat.bodies[0]["max_completion_tokens"] == 3


@pytest.mark.parametrize(
    ("frame", "first", "text"),
    [
        (piece("a"), True, "a"),
        (piece(""), False, ""),
        (piece("", finish_reason="stop"), False, None),
        (piece("", finish_reason="stop"), True, ""),
        (piece("z", finish_reason="length"), False, "z"),
        (USAGE, False, None),
        (chat_piece(role="assistant", content=""), True, None),
        (chat_piece(role="assistant", content="hi"), True, "hi"),
        (chat_piece(content=""), False, ""),
        (chat_piece(reasoning="hm"), True, "hm"),
        (chat_piece(finish="stop"), False, None),
    ],
)
def test_which_frames_are_tokens(frame: dict[str, Any], first: bool, text: str | None) -> None:
    assert token_text(frame, first=first) == text


def test_text_is_counted_when_the_server_sends_no_usage() -> None:
    [done] = load(ScriptedServer([piece(" w11 w12"), piece(" w13"), "[DONE]"]))
    assert done.output_tokens == 3


@pytest.mark.parametrize(
    ("frames", "error"),
    [
        ([piece("a"), {"error": {"message": "boom"}}, "[DONE]"], "boom"),
        (["[DONE]"], "without a token"),
        (["{broken"], "JSONDecodeError"),
    ],
)
def test_failures_are_recorded_not_raised(frames: list[Any], error: str) -> None:
    [done] = load(ScriptedServer(frames))
    assert error in done.error


def test_a_refused_request_counts_as_failed() -> None:
    results = load(ScriptedServer(STREAM, failures=1), count=2)
    assert sorted(done.ok for done in results) == [False, True]
    assert "HTTP 503" in next(done.error for done in results if not done.ok)


def test_concurrency_is_limited_and_waiting_is_recorded() -> None:
    server = ScriptedServer(STREAM)
    done = load(server, count=6, plan=LoadPlan(Arrivals(), max_concurrency=2, ready_timeout=0))
    assert server.most_under_way == 2
    assert max(d.queued for d in done) > 0.05
    assert len(load(ScriptedServer(STREAM), count=3, plan=LoadPlan(Arrivals(), warmups=2, ready_timeout=0))) == 3


def test_ready_check_waits_for_the_server_and_gives_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headway.bench.serve._RETRY_SECONDS", 0.01)
    server = ScriptedServer(STREAM, failures=3)
    assert load(server, plan=LoadPlan(Arrivals(), ready_timeout=60))[0].ok
    assert len(server.bodies) == 2, "one to see that it answers, one that counts"
    with pytest.raises(ServerUnreachableError, match="HTTP 503"):
        load(ScriptedServer(STREAM, failures=10**6), plan=LoadPlan(Arrivals(), ready_timeout=0.05))


def test_the_model_is_asked_for() -> None:
    async def run() -> str:
        async with serving(ScriptedServer(STREAM)) as server:
            return await first_model(server.url, {}, 5)

    assert asyncio.run(run()) == "scripted"
    with pytest.raises(ServerUnreachableError, match="no model"):
        asyncio.run(first_model("http://127.0.0.1:9", {}, 0))


def test_backends() -> None:
    assert default_endpoint("openai-chat") == "/v1/chat/completions"
    with pytest.raises(NotBuiltError, match="openai-embeddings"):
        default_endpoint("openai-embeddings")
    with pytest.raises(ConfigError, match="no backend"):
        default_endpoint("soap")


EXCHANGES = [
    Exchange(10, 5, 100.0, 0.2, [0.1, 0.1, 0.3, 0.1], 0.8, text="hello"),
    Exchange(30, 1, 100.5, 0.4, [], 0.4, text="x"),
    Exchange(99, error="HTTP 503"),
]
CONDITIONS = Conditions("openai", "org/model", "tok", 3, 2.0, 1.0, 4, None, (("gpu", "none"),))


def test_the_table_is_vllms() -> None:
    text = table(summarize(EXCHANGES, 2.0, [99], {"ttft": 300}), CONDITIONS, ["ttft", "tpot"])
    assert text.splitlines() == [
        "============ Serving Benchmark Result ============",
        "Successful requests:                     2",
        "Failed requests:                         1",
        "Maximum request concurrency:             4",
        "Request rate configured (RPS):           2.00",
        "Benchmark duration (s):                  2.00",
        "Total input tokens:                      40",
        "Total generated tokens:                  6",
        "Request throughput (req/s):              1.00",
        "Request goodput (req/s):                 0.50",
        "Output token throughput (tok/s):         3.00",
        "Peak output token throughput (tok/s):    6.00",
        "Peak concurrent requests:                2.00",
        "Total token throughput (tok/s):          23.00",
        "---------------Time to First Token----------------",
        "Mean TTFT (ms):                          300.00",
        "Median TTFT (ms):                        300.00",
        "P99 TTFT (ms):                           398.00",
        "-----Time per Output Token (excl. 1st token)------",
        "Mean TPOT (ms):                          150.00",
        "Median TPOT (ms):                        150.00",
        "P99 TPOT (ms):                           150.00",
        "==================================================",
    ]


KEYS = ["date", "endpoint_type", "backend", "label", "model_id", "tokenizer_id", "num_prompts", "request_rate", "burstiness", "max_concurrency", "duration", "completed", "failed", "total_input_tokens", "total_output_tokens", "request_throughput", "request_goodput", "output_throughput", "total_token_throughput", "max_output_tokens_per_s", "max_concurrent_requests", "rtfx"]
DETAILS = ["input_lens", "output_lens", "ttfts", "itls", "latencies", "start_times", "queue_times", "generated_texts", "errors"]


def test_the_json_has_vllms_keys() -> None:
    summary = summarize(EXCHANGES, 2.0, [50, 99.9], {})
    spread = [f"{kind}_{name}_ms" for name in ("ttft", "tpot", "itl", "e2el") for kind in ("mean", "median", "std", "p50", "p99.9")]
    record = result(summary, CONDITIONS, EXCHANGES, NOW, detailed=False)
    assert set(record) == {*KEYS, *spread, "gpu"}
    assert (record["date"], record["gpu"], record["request_goodput"]) == ("20261129-123005", "none", None)
    detailed = result(summary, CONDITIONS, EXCHANGES, NOW, detailed=True)
    assert set(detailed) - set(record) == set(DETAILS)
    assert all(len(detailed[key]) == 3 for key in DETAILS)
    json.dumps(detailed)


def test_where_results_go(tmp_path: Path) -> None:
    path = result_path(str(tmp_path / "new"), None, CONDITIONS, NOW)
    assert path.name == "openai-2qps-concurrency4-model-20261129-123005.json"
    for value in (1, 2):
        save({"v": value}, path, append=True)
    assert [json.loads(line)["v"] for line in path.read_text().splitlines()] == [1, 2]
    save({"v": 3}, path, append=False)
    assert path.read_text() == '{"v": 3}'
