"""A context file: values by path, quotes with their place, limits."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.doctor.evidence.context import Context, read_context
from headway.errors import DoctorError

KNOWN = Context({"host": {"gpus": [{"name": "A10", "memory_gib": 22.5}], "cpus": "8", "in_container": True}, "said": "slow"})


def test_values_by_path() -> None:
    assert KNOWN.get("host.gpus.0.name") == "A10"
    assert KNOWN.get("host.gpus.-1.name") == "A10"
    assert KNOWN.get("host.gpus.1.name") is None
    assert KNOWN.get("said.more") is None
    assert KNOWN.number("host.gpus.0.memory_gib") == 22.5
    assert KNOWN.number("host.cpus") == 8
    assert KNOWN.number("host.in_container") is None
    assert KNOWN.number("said") is None
    assert KNOWN.text("host.gpus") == ""
    assert KNOWN.items("host") == []
    assert KNOWN.members("said") == {}


def test_quotes_name_their_place() -> None:
    quote = KNOWN.quote("host.gpus.0.name")
    assert (quote.source, quote.line, quote.text) == ("context:host.gpus.0.name", None, "A10")


@pytest.mark.parametrize(
    "text",
    [
        "- a list\n",
        "text",
        "a: [1, 2\n",
        "a: \x01\n",
        "a: &a [*a]\n",
        "a: " + "[" * 200 + "]" * 200 + "\n",
        "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(f"{b}: &{b} [{','.join([f'*{a}'] * 10)}]\n" for a, b in zip("abcdef", "bcdefg", strict=True)),
        "a: !!python/object/apply:os.system ['true']\n",
        "a: 2026-99-99T99:99:99Z\n",
    ],
)
def test_what_is_no_context_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "context.yaml"
    path.write_text(text)
    with pytest.raises(DoctorError) as caught:
        read_context(path)
    assert caught.value.reason == "context_unreadable"


def test_an_empty_file_is_an_empty_context(tmp_path: Path) -> None:
    (tmp_path / "context.yaml").write_text("")
    assert read_context(tmp_path / "context.yaml").tree == {}


def test_dates_and_keys_of_any_type_become_text(tmp_path: Path) -> None:
    (tmp_path / "context.yaml").write_text("1: {2026-01-01: 2026-01-02, null: x}\nb: !!binary aGVsbG8=\n")
    assert read_context(tmp_path / "context.yaml").tree == {"1": {"2026-01-01": "2026-01-02", "None": "x"}, "b": "hello"}
