"""Tables of requests: columns by name, units, and no words of users in what is shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.doctor.evidence.context import Context
from headway.doctor.evidence.log.log import Log
from headway.doctor.evidence.log.scan import read_logs
from headway.doctor.facts.first_token import first_token_of, total_of
from headway.doctor.facts.requests import SIGHTS, RequestRow, is_guided, medians, requests_of
from headway.doctor.finding import Quote

TABLE = """vllm-1  |   id  prompt_tok  out_tok  queue_s  prefill_ms  ttft_srv_s
vllm-1  | r000         400       32      0.5        120         0.7
INFO:     10.20.0.7:43155 - "POST /v1/chat/completions HTTP/1.1" 200 OK
vllm-1  | r001         380       32      1.5        100         1.7
vllm-1  | r002         380       32      short row
"""


def _rows(tmp_path: Path, text: str) -> list[RequestRow]:
    (tmp_path / "log.txt").write_text(text)
    return list(requests_of(read_logs([tmp_path / "log.txt"], SIGHTS), Context({})))


def test_table_behind_prefixes(tmp_path: Path) -> None:
    rows = _rows(tmp_path, TABLE)
    assert [row.id for row in rows] == ["r000", "r001"]
    assert rows[0].number("prompt_tok") == 400
    assert rows[0].seconds("prefill_s") == pytest.approx(0.12)
    assert medians(rows, "queue_s") == 1.0
    assert medians(rows, "tls_s") is None
    assert rows[1].quote.line == 4


def test_two_tables_keep_their_own_columns(tmp_path: Path) -> None:
    rows = _rows(tmp_path, TABLE + "  id  first_reasoning_s  first_content_s  reasoning_tok\nr003  0.1  9.0  600\n")
    assert rows[-1].cells["first_content_s"] == 9.0
    assert "first_content_s" not in rows[0].cells


def test_rows_of_any_name(tmp_path: Path) -> None:
    rows = _rows(
        tmp_path,
        "| request | prompt_tok | ttft_srv_s |\n|---------|------------|------------|\n| cmpl-9f | 64 | 0.2 |\n| 7 | 32 | - |\n"
        "variant  reqs  itl_ms  tokens_per_s\nstream on + 40 stops  64  47  1350\nno stops  64  15  4100\nINFO:     10.4.1.9:31000 - done\n",
    )
    assert [row.id for row in rows] == ["cmpl-9f", "7", "stream on + 40 stops", "no stops"]
    assert [row.number("ttft_srv_s") for row in rows] == [0.2, None, None, None]
    assert rows[2].number("tokens_per_s") == 1350
    assert rows[0].quote.line == 3


def test_timings_one_level_deeper() -> None:
    context = Context({"requests": [{"prompt": "secret", "timings": {"queue": 3, "prefill_ms": 120, "connect_s": 0.5}, "usage": {"prompt_tokens": 9}}]})
    (row,) = requests_of(Log(), context)
    assert (row.seconds("queue_s"), row.seconds("prefill_s"), row.seconds("connect_s"), row.number("prompt_tokens")) == (3, 0.12, 0.5, 9)
    assert "secret" not in row.quote.text


def test_words_of_users_are_never_quoted() -> None:
    context = Context({"requests": [{"prompt": "my secret plan", "messages": [{"content": "more"}], "ttft_s": 1.5}]})
    (row,) = requests_of(Log(), context)
    assert row.quote.text == "ttft_s=1.5"


def test_first_token_of_rows_and_of_histograms(tmp_path: Path) -> None:
    seen = first_token_of(_rows(tmp_path, TABLE), Context({}))
    assert seen is not None
    assert (seen.queue, seen.prefill, seen.total, seen.count, seen.rows) == (1.0, pytest.approx(0.11), 1.7, 2, True)
    context = Context({"metrics": [{f"vllm:{name}_{part}": value for name, total in (("time_to_first_token_seconds", 30.0), ("request_queue_time_seconds", 24.0)) for part, value in (("sum", total), ("count", 10))}]})
    scraped = first_token_of((), context)
    assert scraped is not None
    assert (scraped.queue, scraped.total, scraped.queue_share, scraped.rows) == (2.4, 3.0, pytest.approx(0.8), False)
    assert first_token_of((), Context({})) is None


def test_first_token_from_its_parts() -> None:
    row = RequestRow("r0", {"queue_s": 1.0, "prefill_s": 0.5}, Quote("log", 1, ""))
    assert total_of(row) == 1.5
    assert total_of(RequestRow("r0", {"queue_s": 1.0}, Quote("log", 1, ""))) is None


@pytest.mark.parametrize(
    ("cells", "wanted"),
    [
        ({"schema": "invoice"}, True),
        ({"schema": "no"}, False),
        ({"guided": 0.0}, False),
        ({"guided": True}, True),
        ({"response_format": {"type": "json_schema"}}, True),
        ({"mode": "json_schema"}, True),
        ({"mode": "plain"}, False),
        ({"prompt_tok": 3}, None),
    ],
)
def test_structured_output_of_a_row(cells: dict[str, object], wanted: bool | None) -> None:
    assert is_guided(RequestRow("r0", cells, Quote("log", 1, ""))) is wanted
