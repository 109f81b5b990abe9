"""A report for people: one screen, coloured where the terminal has colours."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.console import Console, Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from headway.doctor.diagnosis import Finding, Report
from headway.doctor.words import Language, Words

if TYPE_CHECKING:
    from headway.doctor.proof import Proof

_SHOWN: Final = 3
_EVIDENCE_SHOWN: Final = 4
_HEADINGS: Final = {
    "evidence": Words("Evidence", "证据"),
    "fixes": Words("What to do", "处理办法"),
    "verify": Words("How to check", "如何验证"),
    "abstained": Words("Could not be judged", "无法判断"),
    "more": Words("more", "更多"),
    "measure": Words("measure", "指标"),
    "before": Words("before", "修复前"),
    "after": Words("after", "修复后"),
}


def show(report: Report, console: Console, language: Language) -> None:
    console.print(Text(report.verdict.speak(language), style="bold"))
    for finding in report.findings[:_SHOWN]:
        console.print(_finding(finding, language))
    if len(report.findings) > _SHOWN:
        rest = ", ".join(finding.rule.id for finding in report.findings[_SHOWN:])
        console.print(Text(f"{_HEADINGS['more'].speak(language)}: {rest}", style="dim"))
    if report.abstained:
        console.print(Text(_HEADINGS["abstained"].speak(language), style="bold"))
        for missing in report.abstained:
            console.print(Text(f"  - {missing.speak(language)}"))


def _finding(finding: Finding, language: Language) -> RenderableType:
    found = finding.found
    parts: list[RenderableType] = [Text(found.cause.speak(language))]
    parts.append(Text(f"\n{_HEADINGS['evidence'].speak(language)}", style="bold"))
    for quote in found.evidence[:_EVIDENCE_SHOWN]:
        place = quote.source if quote.line is None else f"{quote.source}:{quote.line}"
        parts.append(Text.assemble(("  " + place, "cyan"), "  ", (quote.text, "dim")))
    parts.append(Text(f"\n{_HEADINGS['fixes'].speak(language)}", style="bold"))
    for index, fix in enumerate(found.fixes, 1):
        parts.append(Text(f"  {index}. {fix.text.speak(language)}"))
        if fix.command:
            parts.append(Text(f"     {fix.command}", style="green"))
    parts.append(Text.assemble((f"\n{_HEADINGS['verify'].speak(language)}: ", "bold"), found.verify.speak(language)))
    colour = "red" if finding.is_answer and found.weight == "fatal" else "yellow" if finding.is_answer else "blue"
    title = f"{finding.rule.id}  {finding.title.speak(language)}  ({found.confidence:.0%})"
    return Panel(Group(*parts), title=Text(title, style="bold"), title_align="left", border_style=colour)


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
