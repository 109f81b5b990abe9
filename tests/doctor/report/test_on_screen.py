"""A report on a screen of 80 columns, in both languages."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console

from headway.doctor.diagnosis import Finding, Report
from headway.doctor.examine import examine
from headway.doctor.finding import Fix, Found, Quote
from headway.doctor.report.on_screen import show
from headway.doctor.rules.catalogue import rules
from headway.doctor.words import LANGUAGES, Language, Words
from tests.doctor.judging import FIXTURES, fixture_names


def screen(report: Report, language: Language, width: int = 80, colours: bool = False) -> str:
    file = io.StringIO()
    show(report, Console(file=file, width=width, force_terminal=colours, color_system="standard" if colours else None), language)
    return file.getvalue()


def report_of(name: str) -> Report:
    context = FIXTURES / name / "context.yaml"
    return examine([FIXTURES / name / "log.txt"], context if context.exists() else None).report


@pytest.mark.parametrize("language", LANGUAGES)
def test_fixtures_fit_80_columns_and_about_one_screen(language: Language) -> None:
    for name in fixture_names()[::4]:
        lines = screen(report_of(name), language).splitlines()
        wide = [line for line in lines if cell_len(line.rstrip()) > 80 and not line.startswith("     ")]
        assert wide == [], name
        assert len(lines) <= 60, name


def _made(found: Found, abstained: tuple[Words, ...] = ()) -> Report:
    return Report(Words("verdict", "结论"), (Finding(rules()[0], found),), abstained)


def _found(**changes: object) -> Found:
    any_ = Words("words", "文字")
    given: dict[str, object] = {"cause": any_, "evidence": [], "fixes": [], "verify": any_, "confidence": 0.95}
    return Found(**(given | changes))  # type: ignore[arg-type]


def test_commands_are_not_broken_into_lines() -> None:
    command = "vllm serve some/model " + "--flag value " * 20 + "--end"
    assert command in screen(_made(_found(fixes=[Fix(Words("do", "做"), command)])), "en")


def test_a_log_cannot_write_control_sequences_to_the_terminal() -> None:
    evil = "title \x1b]0;owned\x07 back\x08 bell\x07 csi \x9b31m"
    text = screen(_made(_found(cause=Words(evil, evil), evidence=[Quote("log.txt", 1, evil)])), "en")
    assert not any(character in text for character in "\x1b\x07\x08\x9b")


def test_markup_in_a_log_is_text() -> None:
    assert "[red]boom[/red]" in screen(_made(_found(evidence=[Quote("log.txt", 1, "[red]boom[/red]")])), "en")


def test_colours_only_on_a_terminal() -> None:
    assert "\x1b[" not in screen(_made(_found()), "en")
    assert "\x1b[" in screen(_made(_found()), "en", colours=True)


def test_long_quotes_are_cut_and_long_lists_are_counted() -> None:
    missing = tuple(Words(f"fact {number}", f"事实 {number}") for number in range(9))
    text = screen(_made(_found(evidence=[Quote("log.txt", 1, "长" * 300)]), missing), "zh")
    assert text.count("长") < 80
    assert "另有 6 条" in text


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_could_not_be_told_is_said_once(language: Language, tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text("hello\n")
    text = "".join(screen(examine([tmp_path / "log.txt"]).report, language).split())
    assert text.count({"en": "isknown:", "zh": "没有一行能识别"}[language]) == 1
