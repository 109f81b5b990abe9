"""Logs of every shape are read once: which lines are events, whose they are, and what is quoted of them."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import re
from itertools import pairwise
from pathlib import Path

import pytest

from headway.doctor.evidence.log.log import Log
from headway.doctor.evidence.log.scan import read_logs, read_text
from headway.doctor.evidence.sight import sight
from headway.errors import DoctorError

BOOM = sight("boom")
ERROR = sight("Error", pattern=r"^(?P<type>\w+Error)(?:: (?P<message>.*))?$")
SERIES = sight("tick", pattern=r"tick (?P<n>\d+)", series=True)
ROW = sight("never without a head", pattern=r"^(?P<name>\S+) +(?P<n>\d+)$", series=True)
HEAD = sight("name  count", below=ROW)
SIGHTS = (BOOM, ERROR, SERIES, ROW, HEAD)


def read(text: str | bytes) -> Log:
    return read_text("log.txt", text if isinstance(text, bytes) else text.encode(), SIGHTS)


def processes(text: str) -> list[str]:
    return [hit.line.process for hit in read(text).hits(ERROR)]


@pytest.mark.parametrize(
    "wrapped",
    [
        pytest.param(lambda data: data, id="plain"),
        pytest.param(gzip.compress, id="gzip"),
        pytest.param(lzma.compress, id="xz"),
        pytest.param(bz2.compress, id="bzip2"),
        pytest.param(lambda data: b"\xef\xbb\xbf" + data, id="mark"),
        pytest.param(lambda data: data.decode().encode("utf-16"), id="utf-16"),
        pytest.param(lambda data: b"\xfe\xff" + data.decode().encode("utf-16-be"), id="utf-16-be"),
        pytest.param(lambda data: data.decode().encode("utf-16-le"), id="utf-16-le without a mark"),
        pytest.param(lambda data: data.replace(b"\n", b"\r\n"), id="crlf"),
        pytest.param(lambda data: gzip.compress(data.decode().encode("utf-16")), id="utf-16 in gzip"),
    ],
)
def test_packings(wrapped, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "any.name"
    path.write_bytes(wrapped("ValueError: first\nplain\n启动 boom 失败\n".encode()))
    log = read_logs([path], SIGHTS)
    assert [(hit.line.number, hit.line.text) for hit in log.hits(BOOM, ERROR)] == [(1, "ValueError: first"), (3, "启动 boom 失败")]
    assert log.lines == 3


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gz"
    broken.write_bytes(gzip.compress(b"boom\n" * 1000)[:40])
    for path in (broken, tmp_path, tmp_path / "none"):
        with pytest.raises(DoctorError) as caught:
            read_logs([path], SIGHTS)
        assert caught.value.reason == "log_unreadable"


def test_bare_lines_of_a_traceback_belong_to_the_process_above() -> None:
    text = (
        "(EngineCore pid=7) ERROR 11-29 09:14:03 [core.py:93] failed\n"
        'Traceback of the engine:\n  File "a.py", line 1, in f\nValueError: one\n'
        "(APIServer pid=6) INFO 11-29 09:14:03 [api.py:1] waiting\n"
        "OSError: two\n"
    )
    assert processes(text) == ["EngineCore pid=7", "APIServer pid=6"]


def test_a_traceback_that_begins_bare_is_nobodys() -> None:
    text = "(raylet) heartbeat ok\nTraceback (most recent call last):\n  File \"a.py\", line 1, in f\nRuntimeError: x\n"
    assert processes(text) == [""]


def test_bare_lines_belong_to_their_own_container() -> None:
    text = (
        "a-1  | (EngineCore pid=7) ERROR 11-29 09:14:03 [core.py:93] failed\n"
        "b-1  | (EngineCore pid=9) INFO 11-29 09:14:03 [core.py:93] fine\n"
        "a-1  | ValueError: x\n"
        "c-1  | OSError: y\n"
    )
    assert processes(text) == ["EngineCore pid=7", "c-1"]


def test_the_record_of_a_bare_line_may_lie_in_the_block_before() -> None:
    filler = "x" * 150 + "\n"
    text = filler * 6990 + "(EngineCore pid=7) ERROR 11-29 09:14:03 [core.py:93] failed\n" + filler * 40 + "ValueError: x\n"
    assert len(text) > 1 << 20
    assert processes(text) == ["EngineCore pid=7"]


def test_bars_that_overwrite_themselves_hide_no_event() -> None:
    hits = read("Loading:   0%\rLoading:  50%\rValueError: disk\rLoading: 100%\n").hits(ERROR)
    assert [(hit.line.number, hit["message"]) for hit in hits] == [(1, "disk")]


def test_megabytes_in_one_line() -> None:
    text = f"INFO 11-29 09:14:03 [a.py:1] {'y' * 3_000_000} boom {'z' * 500_000}\nboom\n"
    log = read(text)
    assert [hit.line.number for hit in log.hits(BOOM)] == [1, 2]
    assert len(log.hits(BOOM)[0].line.text) < 50_000
    assert "boom" in log.hits(BOOM)[0].quote().text
    assert log.hits(BOOM)[0].line.place == "a.py:1"


def test_a_line_over_the_limit_is_cut_and_the_next_is_read() -> None:
    log = read(b"q" * (9 << 20) + b" boom\nboom\n")
    assert [hit.line.number for hit in log.hits(BOOM)] == [2]
    assert log.lines == 2


def test_counts_and_ends_of_many_hits() -> None:
    log = read("".join(f"boom {number}\n" for number in range(1000)))
    hits = log.hits(BOOM)
    assert log.count(BOOM) == 1000
    assert [hit.line.number for hit in hits[:64]] == list(range(1, 65))
    assert hits[-1].line.number == 1000


def test_beyond_a_thousand_hits_the_count_is_an_estimate_and_the_last_is_still_the_last() -> None:
    noise = "n" * 100
    log = read("".join(f"boom {noise}\nabbooming\n" for _ in range(40_000)))
    assert log.count(BOOM) == 80_000
    assert log.last(BOOM).line.number == 80_000  # type: ignore[union-attr]


def test_series_are_thinned_evenly() -> None:
    log = read("".join(f"tick {number}\n" for number in range(100_000)))
    numbers = [int(hit["n"]) for hit in log.hits(SERIES)]
    steps = {after - before for before, after in pairwise(numbers)}
    assert 500 < len(numbers) <= 1024
    assert steps == {128}
    assert log.count(SERIES) == 100_000


def test_several_files_are_one_log(tmp_path: Path) -> None:
    for name in ("b.log", "a.log"):
        (tmp_path / name).write_text(f"boom {name}\n")
    log = read_logs([tmp_path / "b.log", tmp_path / "a.log"], SIGHTS)
    assert [hit.line.source for hit in log.hits(BOOM)] == ["b.log", "a.log"]


@pytest.mark.parametrize(
    "raw",
    [
        "(EngineCore pid=7) ERROR 11-29 09:14:03 [core.py:93] a boom here",
        "\x1b[1;36m(EngineCore pid=7)\x1b[0;0m \x1b[31mERROR\x1b[0m 11-29 09:14:03 [core.py:93] a \x1b[1mboom\x1b[0m here",
        json.dumps({"log": '(EngineCore pid=7) ERROR 11-29 09:14:03 [core.py:93] "a" boom {"b": 1}\n', "stream": "stderr"}),
        json.dumps({"level": "error", "msg": "boom", "deployment": "pii", "code": "x"}),
        json.dumps({"level": "error", "msg": "启动 boom", "path": "/a"}),
        "[31mERROR[0m a boom behind colours that lost their escape",
        "boom \t  spread\tout",
        "Authorization: Bearer abcdefghijkl boom boom boom boom boom boom boom boom",
        "prompt: 'why does it say hello', boom happened because of this and that, and more",
    ],
)
def test_quotes_stand_in_the_file(raw: str) -> None:
    quote = read(f"first\n{raw}\n").hits(BOOM)[0].quote()
    plain = " ".join(_uncoloured(raw).split())
    assert quote.line == 2
    assert " ".join(quote.text.split()).strip("…. ")[:40] in plain
    assert "abcdefghijkl" not in quote.text
    assert "hello" not in quote.text


def _uncoloured(text: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text)


def names(text: str) -> list[str]:
    return [hit["name"] for hit in read(text).hits(ROW)]


def test_lines_below_a_hit_need_no_anchor_until_one_does_not_match() -> None:
    assert names("x 1\nname  count\na 1\nb 2\nend of it\nc 3\n") == ["a", "b"]
    assert names("vllm-1  | name  count\r\nvllm-1  | a 1\r\nname  count\nb 2\n") == ["a", "b"]
    assert names("name  count") == []


def test_rows_go_on_in_the_next_block_and_end_with_the_file(tmp_path: Path) -> None:
    filler = "plain text without meaning\n" * 40_000
    assert names(filler + "name  count\n" + "".join(f"row{n} {n}\n" for n in range(900)) + filler) == [f"row{n}" for n in range(900)]
    for file, text in (("one", "name  count\na 1"), ("two", "b 2\n")):
        (tmp_path / file).write_text(text)
    log = read_logs([tmp_path / "one", tmp_path / "two"], SIGHTS)
    assert [hit["name"] for hit in log.hits(ROW)] == ["a"]


def test_a_table_is_followed_for_a_bounded_number_of_lines() -> None:
    assert len(names("name  count\n" + "".join(f"row{n} {n}\n" for n in range(3000)))) == 1024
