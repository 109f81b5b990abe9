"""Requests with their timings: rows of a table in the log, or the context's `requests`.

A table is a line of column names with rows below it, whatever names the rows; rows that stand between other lines of the
log are found by an id such as `r017`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from headway.doctor.evidence.context import Context
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.log.log import Log
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import Quote

ROW: Final = sight(
    *(f"r{number:02}" for number in range(100)),
    *(f"{letter}{digit} " for letter in ("r", "#", "req-", "req") for digit in range(10)),
    *(f"{letter}{digit}" for letter in ("req-", "req") for digit in range(10)),
    pattern=r"^[\s|]*(?=\S*\d|.*[\s|]\d)(?P<id>[\w#][\w.:#/\-]*)(?P<cells>(?:[\s|]+[\w.\-/%+:,#()]+){2,})[\s|]*$|^(?P<rule>[\s|+:=\-]{5,})$",
    series=True,
)
HEADER: Final = sight(
    "prompt_tok", "input_tok", "out_tok", "output_tok", "ttft_", "queue_s", "queue_ms", "prefill_s", "prefill_ms", "itl_", "first_content", "finish_reason", "tokens_per_s", "tok_per_s", "tok/s", "total_s",
    pattern=r"^[\s|]*(?:[a-z_#]\w*(?:[\s|]+[a-z_][\w/%]*){2,})[\s|]*$", below=ROW,
)  # fmt: skip
SIGHTS: Final = (HEADER, ROW)

# what a table may call the thing, seconds first; a `_ms` column is turned into seconds
PROMPT_TOKENS: Final = ("prompt_tok", "prompt_tokens", "input_tok", "input_tokens", "in_tok", "in_tokens", "prompt_len", "input_len")
OUTPUT_TOKENS: Final = ("out_tok", "output_tok", "output_tokens", "completion_tokens", "gen_tok", "gen_tokens", "output_len")
QUEUE: Final = ("queue_s", "queue_time_s", "queued_s", "queue_wait_s", "wait_s")
PREFILL: Final = ("prefill_s", "prefill_time_s")
AT_SERVER: Final = ("ttft_srv_s", "ttft_server_s", "server_ttft_s", "srv_ttft_s", "first_token_srv_s", "first_token_server_s")
AT_CLIENT: Final = ("ttft_cli_s", "ttft_client_s", "client_ttft_s", "cli_ttft_s", "first_token_cli_s", "first_token_client_s")
TTFT_SERVER: Final = (*AT_SERVER, "ttft_s")
TTFT_CLIENT: Final = (*AT_CLIENT, "ttft_s")
GAP_SERVER: Final = ("itl_srv_s", "itl_server_s", "server_itl_s", "srv_itl_s", "itl_s", "tpot_s")
GAP_CLIENT: Final = ("itl_cli_s", "itl_client_s", "client_itl_s", "cli_itl_s")

_GUIDED: Final = ("guided", "guided_json", "schema", "json_schema", "structured", "structured_outputs", "response_format", "grammar", "format", "constraint")
_KINDS: Final = ("mode", "kind", "type", "class")
_NOT_GUIDED: Final = ("", "0", "no", "none", "false", "-", "text", "plain", "free", "off", "null")
_WORDS: Final = ("prompt", "messages", "content", "input", "tools", "text", "system", "output", "answer", "body")
_INNER: Final = ("timings", "timing", "times", "phases", "usage")
_UNITS: Final = ("_s", "_ms", "_tok", "_pct")
_TOO_LARGE: Final = 1e12  # no count and no time; also leaves infinity and NaN out


@dataclass(frozen=True, slots=True)
class RequestRow:
    """`cells`: column -> value, a number where it is one. Names as in the table, such as prompt_tok, out_tok, queue_s,
    prefill_s, ttft_srv_s, ttft_cli_s, itl_srv_ms, itl_cli_ms."""

    id: str
    cells: Mapping[str, Any]
    quote: Quote

    def number(self, *columns: str) -> float | None:
        """The first of these columns that holds a number from zero on."""
        for column in columns:
            value = self.cells.get(column)
            if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < _TOO_LARGE:
                return float(value)
        return None

    def seconds(self, *columns: str) -> float | None:
        """The first of these `_s` columns that holds a number, or its `_ms` twin in seconds."""
        for column in columns:
            if (value := self.number(column)) is not None:
                return value
            if (value := self.number(column.removesuffix("_s") + "_ms")) is not None:
                return value / 1e3
        return None


def medians(rows: Sequence[RequestRow], *columns: str) -> float | None:
    """Median in seconds over the rows that have one of the columns; None when fewer than half do."""
    values = [value for row in rows if (value := row.seconds(*columns)) is not None]
    return median(values) if values and len(values) * 2 >= len(rows) else None


def is_guided(row: RequestRow) -> bool | None:
    """Whether the request asked for structured output; None when the row does not say."""
    for column in _GUIDED:
        if column in row.cells:
            value = row.cells[column]
            return bool(value) if isinstance(value, (bool, Mapping, list)) else str(value).lower().removesuffix(".0") not in _NOT_GUIDED
    named = next((str(row.cells[column]).lower() for column in _KINDS if column in row.cells), None)
    return None if named is None else any(word in named for word in ("json", "schema", "guid", "struct", "grammar", "regex", "constrain"))


def requests_of(log: Log, context: Context) -> Sequence[RequestRow]:
    rows = _from_table(log)
    if rows:
        return rows
    return [
        RequestRow(str(row.get("id", index)), _flat(row), _quote(context, index, _flat(row)))
        for index, row in enumerate(context.items("requests"))
        if isinstance(row, Mapping)
    ]


def _flat(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Timings and counts that stand one level deeper as columns of the row; a bare name of a time gets `_s`."""
    deeper = {name: value for inner in _INNER if isinstance(row.get(inner), Mapping) for name, value in row[inner].items()}
    named = {name if name.endswith((*_UNITS, "tokens")) else f"{name}_s": value for name, value in deeper.items()}
    return {**row, **named} if named else row


def _quote(context: Context, index: int, row: Mapping[str, Any]) -> Quote:
    """Timings and sizes only: what users wrote is never shown."""
    shown = ", ".join(f"{name}={value}" for name, value in row.items() if name not in _WORDS and isinstance(value, (int, float)))
    return context.quote(f"requests.{index}", shown or f"request {index}")


def _from_table(log: Log) -> list[RequestRow]:
    rows: list[RequestRow] = []
    headers = list(log.hits(HEADER))
    for hit in log.hits(ROW):
        if not hit["id"]:
            continue
        header = next((found for found in reversed(headers) if _above(found, hit)), None)
        if header is None:
            continue
        columns, cells = _cells(header), _cells(hit)
        if 1 <= (more := len(cells) - len(columns)) < 8 and all(map(_is_number, cells[more + 1 :])):
            cells = [" ".join(cells[: more + 1]), *cells[more + 1 :]]  # a name of several words
        if len(columns) == len(cells):
            rows.append(RequestRow(cells[0], dict(zip(columns, map(_value, cells), strict=True)), hit.quote()))
    return rows


def _cells(hit: Hit) -> list[str]:
    return hit.line.text.replace("|", " ").split()


def _above(header: Hit, row: Hit) -> bool:
    return header.line.source == row.line.source and header.line.number < row.line.number


def _is_number(cell: str) -> bool:
    return cell == "-" or isinstance(_value(cell), float)


def _value(cell: str) -> float | str:
    try:
        return float(cell.rstrip("%"))
    except ValueError:
        return cell
