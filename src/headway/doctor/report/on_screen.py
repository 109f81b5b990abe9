"""A report for people: one screen, coloured where the terminal has colours."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.padding import Padding
from rich.rule import Rule
from rich.table import Table
from rich.text import Text

from headway.doctor.diagnosis import Finding, Report
from headway.doctor.finding import Quote
from headway.doctor.words import Language, Words

if TYPE_CHECKING:
    from headway.doctor.proof import Proof

_EVIDENCE_SHOWN: Final = 4
_FIXES_SHOWN: Final = 4
_OTHERS_SHOWN: Final = 4
_ABSTAINED_SHOWN: Final = 3
_QUOTE_LINES: Final = 2
_INDENT: Final = 2
_HEADINGS: Final = {
    "evidence": Words("Evidence", "证据"),
    "fixes": Words("What to do", "处理办法"),
    "verify": Words("How to check", "如何验证"),
    "others": Words("Also seen", "其他发现"),
    "abstained": Words("Could not be judged", "无法判断"),
    "measure": Words("measure", "指标"),
    "before": Words("before", "修复前"),
    "after": Words("after", "修复后"),
    "more": Words("and {} more (--json shows all)", "另有 {} 条（--json 显示全部）"),
}
# what a terminal would obey
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def show(report: Report, console: Console, language: Language) -> None:
    """The verdict, the first finding in full, the others in a line each, and what could not be judged."""
    console.print(Text(_clean(report.verdict.speak(language)), style="bold"))
    if report.findings:
        _finding(report.findings[0], console, language)
    others = [_line(finding, language) for finding in report.findings[1:]]
    _list(console, "others", others, _OTHERS_SHOWN, language)
    # without an answer the verdict has said the first one
    answered = any(finding.is_answer for finding in report.findings)
    missing = [Text(_clean(words.speak(language))) for words in report.abstained[0 if answered else 1 :]]
    _list(console, "abstained", missing, _ABSTAINED_SHOWN, language)


def show_proof(proof: Proof, console: Console, language: Language) -> None:
    """The verdict on a fix, with every measure before and after."""
    colour = {"fixed": "green", "not fixed": "red", "other cause": "yellow", "could not tell": "yellow"}[proof.verdict]
    console.print(Text(proof.said.speak(language), style=f"bold {colour}"))
    if not proof.before:
        return
    table = Table(*(_HEADINGS[name].speak(language) for name in ("measure", "before", "after")), box=None)
    for name, before in proof.before.items():
        table.add_row(name, f"{before:g}", f"{proof.after[name]:g}")
    console.print(table)


def _list(console: Console, heading: str, entries: Sequence[Text], shown: int, language: Language) -> None:
    if not entries:
        return
    _heading(console, heading, language)
    for entry in entries[:shown]:
        console.print(_indented(entry))
    if len(entries) > shown:
        console.print(_indented(Text(_HEADINGS["more"].speak(language).format(len(entries) - shown), style="dim")))


def _heading(console: Console, heading: str, language: Language) -> None:
    console.print(Text(f"\n{_HEADINGS[heading].speak(language)}", style="bold"))


def _indented(text: Text, columns: int = 2) -> Padding:
    return Padding(text, (0, 0, 0, columns))


def _line(finding: Finding, language: Language) -> Text:
    found = finding.found
    first = f": {found.fixes[0].text.speak(language)}" if found.fixes else ""
    return Text.assemble((finding.rule.id, "bold"), f"  {_clean(finding.title.speak(language))} ({found.confidence:.0%}){_clean(first)}")


def _finding(finding: Finding, console: Console, language: Language) -> None:
    """No frame around it and no line breaks in commands, so that they can be copied."""
    found = finding.found
    colour = "red" if finding.is_answer and found.weight == "fatal" else "yellow" if finding.is_answer else "blue"
    title = f"{finding.rule.id}  {_clean(finding.title.speak(language))}  ({found.confidence:.0%})"
    console.print()
    console.print(Rule(Text(title, style="bold"), align="left", style=colour))
    console.print(Text(_clean(found.cause.speak(language))))
    if found.evidence:
        _heading(console, "evidence", language)
        for quote in found.evidence[:_EVIDENCE_SHOWN]:
            console.print(_indented(_quote(quote, console.width)))
    if found.fixes:
        _heading(console, "fixes", language)
        for number, fix in enumerate(found.fixes[:_FIXES_SHOWN], 1):
            console.print(_indented(Text(f"{number}. {_clean(fix.text.speak(language))}")))
            for line in _clean(fix.command or "").splitlines():
                console.print(Text(f"     {line}", style="green"), soft_wrap=True)
    _heading(console, "verify", language)
    console.print(_indented(Text(_clean(found.verify.speak(language)))))


def _quote(quote: Quote, width: int) -> Text:
    """`file:line  text`, cut to two lines of the screen."""
    place = quote.source if quote.line is None else f"{quote.source}:{quote.line}"
    text = " ".join(_clean(quote.text).split())
    room = max(20, _QUOTE_LINES * (width - _INDENT) - cell_len(place) - 8)
    if cell_len(text) > room:
        text = set_cell_size(text, room).rstrip() + "…"
    return Text.assemble((place, "cyan"), "  ", (text, "dim"))


def _clean(text: str) -> str:
    return _CONTROL.sub("", text)
