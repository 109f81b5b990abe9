from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headway.bench.simulation.request_trace import MOST_REQUESTS, MOST_TOKENS, request_trace
from headway.bench.simulation.synthetic_trace import Traffic, synthetic_trace
from headway.bench.simulation.trace_files import MOST_LINE, read_trace
from headway.errors import ArtifactError, ConfigError


def written(folder: Path, text: str) -> Path:
    path = folder / "trace"
    path.write_text(text, encoding="utf-8")
    return path


def line(**fields: Any) -> str:
    return json.dumps({"arrival": 0, "prompt_tokens": 8, "output_tokens": 2} | fields) + "\n"


def test_our_own_lines(tmp_path: Path) -> None:
    trace = read_trace(written(tmp_path, line(arrival=3.5, prefix="a") + "\n" + line(arrival=1, prompt_tokens=20, prefix="b", prefix_tokens=5) + line(arrival=1, prefix="a", prefix_tokens=0)))
    assert trace.arrival.tolist() == [0.0, 0.0, 2.5]
    assert trace.prompt.tolist() == [20, 8, 8]
    assert trace.prefix.tolist() == [1, 0, 0]
    assert trace.shared.tolist() == [5, 0, 8]
    assert trace.seconds == 2.5


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("\n", "no request"),
        (line() + "{not json\n", "line 2 is not JSON"),
        ("[1, 2]\n", "line 1 must be a JSON object"),
        (line(arrival=-1), "line 1: arrival"),
        (line() + line(arrival=float("nan")), "line 2: arrival"),
        (line(arrival=float("inf")), "arrival"),
        (line(arrival=True), "arrival"),
        (line(arrival=1e9), "arrival"),
        (line(prompt_tokens=0), "prompt_tokens must be a whole number from 1"),
        (line(prompt_tokens=1.5), "prompt_tokens"),
        (line(output_tokens=-3), "output_tokens"),
        (line(output_tokens=MOST_TOKENS + 1), "output_tokens"),
        (line(output_tokens="8"), "output_tokens"),
        (line(prefix="a", prefix_tokens=9), "prefix_tokens"),
        (line(prefix_tokens=3), "without prefix"),
        (line(prefix=["a"]), "prefix"),
        (line(output=3), "unknown keys output"),
        ('{"arrival": 0}\n', "prompt_tokens, output_tokens missing"),
        (line(prefix="x" * MOST_LINE), "more than"),
        ("TIMESTAMP,ContextTokens\n1,2\n", "the header must name"),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\n1,2\n", "line 2: expected 3 columns"),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\nyesterday,2,3\n", "line 2: TIMESTAMP"),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\n1,two,3\n", "line 2: prompt_tokens"),
        ("TIMESTAMP,ContextTokens,GeneratedTokens\nnan,2,3\n", "line 2: arrival"),
        ('{"date": "x", "duration": 1}', "--save-detailed"),
        ('{"date": "x", "start_times": [1, 2], "input_lens": [1], "output_lens": [1], "errors": [""]}', "equally long"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(ConfigError) as error:
        read_trace(written(tmp_path, text))
    assert error.value.reason == "trace_invalid"
    assert said in error.value.message


def test_bytes_that_are_no_text_and_files_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "trace").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="UTF-8"):
        read_trace(tmp_path / "trace")
    with pytest.raises(ArtifactError):
        read_trace(tmp_path / "missing")
    with pytest.raises(ArtifactError):
        read_trace(tmp_path)


def test_the_columns_of_the_azure_traces(tmp_path: Path) -> None:
    text = "TIMESTAMP,ContextTokens,GeneratedTokens\r\n2023-11-16 18:15:46.6805900,374,44\r\n2023-11-16 18:15:50.9951690,396,109\r\n2023-11-16 18:15:51.0,5,0\r\n"
    trace = read_trace(written(tmp_path, "\ufeff" + text))
    assert trace.arrival.tolist() == pytest.approx([0, 4.314579])
    assert (trace.prompt.tolist(), trace.output.tolist()) == ([374, 396], [44, 109])


def test_what_bench_serve_saves(tmp_path: Path) -> None:
    from datetime import datetime

    from headway.bench.measures import Exchange, summarize
    from headway.bench.serve_report import Conditions, result, save

    done = [Exchange(30, 5, start=1000.5, ttft=0.1, latency=0.5), Exchange(40, 6, start=1000.0, ttft=0.1, latency=0.5), Exchange(9, 0, start=1001.0, error="HTTP 500")]
    record = result(summarize(done, 2.0, [99], {}), Conditions("openai", "m", "m", 3, 2.0, 1.0, None), done, datetime(2026, 1, 1), detailed=True)
    save(record, tmp_path / "result.json", append=False)
    save(record, tmp_path / "result.json", append=True)
    trace = read_trace(tmp_path / "result.json")
    assert trace.arrival.tolist() == [0.0, 0.5]
    assert (trace.prompt.tolist(), trace.output.tolist()) == ([40, 30], [6, 5])


def test_a_trace_has_a_size() -> None:
    with pytest.raises(ConfigError):
        request_trace([], [], [])
    with pytest.raises(ConfigError):
        Traffic(MOST_REQUESTS + 1, ((0, 1.0),))


def test_made_up_traffic_keeps_its_rates() -> None:
    trace = synthetic_trace(Traffic(9000, ((0, 10.0), (100, 80.0), (200, 10.0)), burstiness=0.5, prompt=100, output=10, ratio=0.2, prefixes=4, prefix_tokens=50))
    busy = ((trace.arrival >= 100) & (trace.arrival < 200)).sum()
    assert busy == pytest.approx(8000, rel=0.06)
    assert (trace.arrival < 100).sum() == pytest.approx(1000, rel=0.15)
    assert (trace.prompt.min(), trace.prompt.max(), trace.shared.max()) == (130, 170, 50)
    assert sorted(set(trace.prefix.tolist())) == [0, 1, 2, 3]
    assert (synthetic_trace(Traffic(50, ((0, 1.0),))).arrival == synthetic_trace(Traffic(50, ((0, 1.0),))).arrival).all()


@pytest.mark.parametrize("wrong", [{"rates": ()}, {"rates": ((1, 2.0),)}, {"rates": ((0, 0.0),)}, {"rates": ((0, 1.0), (0, 2.0))}, {"burstiness": 0.0},
                                   {"ratio": 1.0}, {"prompt": 0}, {"prefixes": 2}, {"rates": ((0, 1e-9),)}])  # fmt: skip
def test_traffic_that_cannot_be(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        synthetic_trace(Traffic(**({"requests": 10, "rates": ((0, 1.0),)} | wrong)))
