"""Requests with their timings: rows of a table in the log, or the context's `requests`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from headway.doctor.evidence.context import Context
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.log.log import Log
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import Quote

HEADER: Final = sight("prompt_tok", "ttft_cli", "ttft_srv", "ttft_s", "queue_s", pattern=r"^\s*[a-z_]+(?:\s+[a-z_0-9]+){3,}\s*$")
ROW: Final = sight(
    *(f"{letter}{digit}" for letter in ("r", "req-", "req", "cmpl-", "#") for digit in "0123456789"),
    pattern=r"^\s*(?P<id>(?:r|req-?|cmpl-|chatcmpl-|#)?\d[\w-]*)(?P<cells>(?:\s+[\w.\-/%]+){3,})\s*$",
    series=True,
)
SIGHTS: Final = (HEADER, ROW)


@dataclass(frozen=True, slots=True)
class RequestRow:
    """`cells`: column -> value, a number where it is one. Names as in the table, such as prompt_tok, out_tok, queue_s,
    prefill_s, ttft_srv_s, ttft_cli_s, itl_srv_ms, itl_cli_ms."""

    id: str
    cells: Mapping[str, Any]
    quote: Quote

    def number(self, *columns: str) -> float | None:
        """The first of these columns that holds a number."""
        for column in columns:
            value = self.cells.get(column)
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                return float(value)
        return None


def requests_of(log: Log, context: Context) -> Sequence[RequestRow]:
    rows = _from_table(log)
    if rows:
        return rows
    return [
        RequestRow(str(row.get("id", index)), row, context.quote(f"requests.{index}"))
        for index, row in enumerate(context.items("requests"))
        if isinstance(row, Mapping)
    ]


def _from_table(log: Log) -> list[RequestRow]:
    rows: list[RequestRow] = []
    headers = list(log.hits(HEADER))
    for hit in log.hits(ROW):
        header = next((found for found in reversed(headers) if _above(found, hit)), None)
        if header is None:
            continue
        columns, cells = header.line.text.split(), hit.line.text.split()
        if len(columns) == len(cells):
            rows.append(RequestRow(cells[0], dict(zip(columns, map(_value, cells), strict=True)), hit.quote()))
    return rows


def _above(header: Hit, row: Hit) -> bool:
    return header.line.source == row.line.source and header.line.number < row.line.number


def _value(cell: str) -> float | str:
    try:
        return float(cell.rstrip("%"))
    except ValueError:
        return cell
