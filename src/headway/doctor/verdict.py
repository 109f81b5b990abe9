"""The one sentence at the top: cause and first step, or that nothing is wrong, or what is missing to decide."""

from __future__ import annotations

from collections.abc import Sequence

from headway.doctor.case import Case
from headway.doctor.finding import ANSWER_ABOVE, Found
from headway.doctor.words import Words


def verdict_of(case: Case, title: Words | None, found: Found | None, abstained: Sequence[Words]) -> Words:
    if title is not None and found is not None and found.confidence > ANSWER_ABOVE:
        if not found.fixes:
            return title
        first = found.fixes[0].text
        return Words(f"{title.en}. First step: {first.en}", f"{title.zh}。第一步：{first.zh}")
    if abstained:
        return Words(f"The cause cannot be told from this: {abstained[0].en}", f"现有材料无法判定原因：{abstained[0].zh}")
    return Words("Nothing wrong was found in what was given.", "在所给材料中没有发现问题。")


def umbrella_only(case: Case) -> Words | None:
    """What to ask for when the log has errors that no rule explains, None when it has none."""
    exceptions = case.exceptions
    if exceptions.first:
        hit = exceptions.first[0]
        text = hit.line.quote().text[:120]
        return Words(
            f"line {hit.line.number} holds an error that no rule explains ({text}); the lines of process {hit.line.process or 'this log'} before it would show its cause",
            f"第 {hit.line.number} 行的错误没有规则能解释（{text}）；需要进程 {hit.line.process or '本日志'} 在它之前的日志行",
        )
    if exceptions.umbrellas:
        hit = exceptions.umbrellas[0]
        return Words(
            f"line {hit.line.number} only says that another process failed; the lines of that process (the root cause stands above) are missing",
            f"第 {hit.line.number} 行只说明另一个进程失败；缺少该进程的日志（根本原因在更前面）",
        )
    return None
