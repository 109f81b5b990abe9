"""Traces in files -> RequestTrace: JSON lines of ours, results of `headway bench serve --save-detailed`, CSV with the columns of the Azure LLM traces."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from headway.artifacts.foreign_file import regular_file_size
from headway.bench.simulation.request_trace import (
    MOST_REQUESTS,
    MOST_SECONDS,
    MOST_TOKENS,
    NO_PREFIX,
    RequestTrace,
    request_trace,
)
from headway.errors import ConfigError

MOST_BYTES: Final = 1 << 30
MOST_LINE: Final = 64 << 10
MOST_RESULT_BYTES: Final = 256 << 20  # one JSON object, read as a whole
_KEYS: Final = frozenset({"arrival", "prompt_tokens", "output_tokens", "prefix", "prefix_tokens"})
_AZURE: Final = ("TIMESTAMP", "ContextTokens", "GeneratedTokens")


@dataclass(slots=True)
class _Columns:
    """What was read so far; prefixes are numbered as they come."""

    path: Path
    arrival: list[float] = field(default_factory=list)
    prompt: list[int] = field(default_factory=list)
    output: list[int] = field(default_factory=list)
    prefix: list[int] = field(default_factory=list)
    shared: list[int] = field(default_factory=list)
    names: dict[str, int] = field(default_factory=dict)

    def add(self, place: str, arrival: object, prompt: object, output: object, prefix: object = None, shared: object = None) -> None:
        if len(self.arrival) >= MOST_REQUESTS:
            raise _wrong(self.path, f"{place}: a trace has at most {MOST_REQUESTS:,} requests")
        self.arrival.append(_seconds(self.path, place, arrival))
        self.prompt.append(_tokens(self.path, place, "prompt_tokens", prompt, 1))
        self.output.append(_tokens(self.path, place, "output_tokens", output, 1))
        if prefix is None:
            if shared is not None:
                raise _wrong(self.path, f"{place}: prefix_tokens without prefix")
            self.prefix.append(NO_PREFIX)
            self.shared.append(0)
            return
        if not isinstance(prefix, str | int) or isinstance(prefix, bool) or len(str(prefix)) > 256:
            raise _wrong(self.path, f"{place}: prefix must be a name of at most 256 characters or a number, found {str(prefix)!r:.60}")
        self.prefix.append(self.names.setdefault(str(prefix), len(self.names)))
        self.shared.append(self.prompt[-1] if shared is None else _tokens(self.path, place, "prefix_tokens", shared, 0))
        if self.shared[-1] > self.prompt[-1]:
            raise _wrong(self.path, f"{place}: prefix_tokens ({self.shared[-1]}) are part of prompt_tokens ({self.prompt[-1]}), not more")

    def trace(self) -> RequestTrace:
        if not self.arrival:
            raise _wrong(self.path, "there is no request in it")
        return request_trace(self.arrival, self.prompt, self.output, self.prefix, self.shared)


def read_trace(path: Path) -> RequestTrace:
    """The format is that of the content: a CSV header, an object that has `start_times`, or one object per line with arrival (seconds),
    prompt_tokens, output_tokens, and maybe prefix (a name) with prefix_tokens (absent = the whole prompt).

    Raises ConfigError (`trace_invalid`) that names the line and what was expected, ArtifactError when the file cannot be read.
    """
    size = regular_file_size(path, "a trace")
    if size > MOST_BYTES:
        raise _wrong(path, f"it has {size:,} bytes, the limit is {MOST_BYTES:,}")
    first = next(_lines(path), "")
    if first.lstrip("\ufeff").split(",")[0].strip() == _AZURE[0]:
        return _azure(path)
    if size <= MOST_RESULT_BYTES and '"date"' in first[:200]:
        return _bench_result(path)
    return _json_lines(path)


def _lines(path: Path) -> Iterator[str]:
    """Raises for lines that are too long and for what is no text."""
    limit = MOST_RESULT_BYTES if _starts_as_result(path) else MOST_LINE
    try:
        with path.open(encoding="utf-8") as source:
            number = 0
            while line := source.readline(limit + 1):
                number += 1
                if len(line) > limit:
                    raise _wrong(path, f"line {number} has more than {limit:,} characters")
                yield line
    except UnicodeDecodeError as error:
        raise _wrong(path, f"it is no UTF-8 text: {error.reason}") from None
    except OSError as error:
        raise _wrong(path, f"it cannot be read: {error.strerror}") from None


def _starts_as_result(path: Path) -> bool:
    """`headway bench serve` writes one long line."""
    with path.open("rb") as source:
        return b'"date"' in source.read(200)


def _json_lines(path: Path) -> RequestTrace:
    columns = _Columns(path)
    for number, line in enumerate(_lines(path), 1):
        if not line.strip():
            continue
        row, place = _object(path, line, f"line {number}"), f"line {number}"
        if unknown := set(row) - _KEYS:
            raise _wrong(path, f"{place}: unknown keys {', '.join(sorted(unknown))[:80]}; known are {', '.join(sorted(_KEYS))}")
        if missing := [key for key in ("arrival", "prompt_tokens", "output_tokens") if key not in row]:
            raise _wrong(path, f"{place}: {', '.join(missing)} missing")
        columns.add(place, row["arrival"], row["prompt_tokens"], row["output_tokens"], row.get("prefix"), row.get("prefix_tokens"))
    return columns.trace()


def _bench_result(path: Path) -> RequestTrace:
    """The last record of the file, if several were appended. Failed requests are left out."""
    lines = [line for line in _lines(path) if line.strip()]
    record = _object(path, lines[-1], f"line {len(lines)}")
    lists = [record.get(key) for key in ("start_times", "input_lens", "output_lens", "errors")]
    if not all(isinstance(each, list) for each in lists):
        raise _wrong(path, "it is a result without one entry per request; save it with `headway bench serve --save-detailed`")
    starts, prompts, outputs, errors = lists
    if len({len(each) for each in lists if each is not None}) != 1:
        raise _wrong(path, "start_times, input_lens, output_lens and errors are not equally long")
    columns = _Columns(path)
    origin = min((value for value in starts or [] if isinstance(value, int | float)), default=0.0)  # of a monotonic clock
    for number, (start, prompt, output, error) in enumerate(zip(starts or [], prompts or [], outputs or [], errors or [], strict=True)):
        if not error:
            columns.add(f"request {number}", start - origin if isinstance(start, int | float) else start, prompt, output)
    return columns.trace()


def _azure(path: Path) -> RequestTrace:
    """TIMESTAMP (a date and time, or seconds), ContextTokens, GeneratedTokens: the columns of AzureLLMInferenceTrace_*.csv that Microsoft
    published. Requests that generated nothing are left out."""
    columns = _Columns(path)
    rows = csv.reader(_lines(path))
    header = [name.strip().lstrip("\ufeff") for name in next(rows)]
    try:
        time, prompt, output = (header.index(name) for name in _AZURE)
    except ValueError:
        raise _wrong(path, f"the header must name {', '.join(_AZURE)}, found {', '.join(header)[:120]}") from None
    read = _time_reader(path)
    for number, row in enumerate(rows, 2):
        if not row:
            continue
        place = f"line {number}"
        if len(row) != len(header):
            raise _wrong(path, f"{place}: expected {len(header)} columns, found {len(row)}")
        if row[output].strip() == "0":
            continue
        columns.add(place, read(place, row[time]), _whole(row[prompt]), _whole(row[output]))
    return columns.trace()


def _time_reader(path: Path) -> Callable[[str, str], float]:
    """Seconds since the first time that is read."""
    origin: list[datetime] = []

    def read(place: str, text: str) -> float:
        try:
            return float(text)
        except ValueError:
            pass
        try:
            # The traces have seven digits behind the second; Python takes six.
            whole, dot, fraction = text.strip().partition(".")
            moment = datetime.fromisoformat(whole + dot + fraction.rstrip("Z")[:6].ljust(6, "0") if dot else whole).replace(tzinfo=None)
        except ValueError:
            raise _wrong(path, f"{place}: TIMESTAMP must be a date and time or seconds, found {text!r:.60}") from None
        if not origin:
            origin.append(moment)
        return max(0.0, (moment - origin[0]).total_seconds())

    return read


def _whole(text: str) -> object:
    try:
        return int(text)
    except ValueError:
        return text


def _object(path: Path, line: str, place: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _wrong(path, f"{place} is not JSON: {str(error)[:120]}") from None
    if not isinstance(value, dict):
        raise _wrong(path, f"{place} must be a JSON object, found {type(value).__name__}")
    return value


def _seconds(path: Path, place: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or not 0 <= value <= MOST_SECONDS:
        raise _wrong(path, f"{place}: arrival must be seconds from 0 to {MOST_SECONDS:,.0f}, found {value!r:.60}")
    return float(value)


def _tokens(path: Path, place: str, name: str, value: object, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MOST_TOKENS:
        raise _wrong(path, f"{place}: {name} must be a whole number from {least} to {MOST_TOKENS:,}, found {value!r:.60}")
    return value


def _wrong(path: Path, what: str) -> ConfigError:
    return ConfigError(f"trace {path}: {what}", reason="trace_invalid", param="trace")
