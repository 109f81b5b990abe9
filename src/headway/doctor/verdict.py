"""The one sentence at the top: cause and first step, or that nothing is wrong, or what is missing to decide."""

from __future__ import annotations

from collections.abc import Sequence

from headway.doctor.case import Case
from headway.doctor.finding import ANSWER_ABOVE, Found
from headway.doctor.words import Words


def verdict_of(case: Case, title: Words | None, found: Found | None, abstained: Sequence[Words]) -> Words:
    """`title` and `found` of the first finding, if there is one."""
    if title is not None and found is not None and found.confidence > ANSWER_ABOVE:
        if not found.fixes:
            return title
        first = found.fixes[0]
        command = f"`{first.command}`" if first.command and "\n" not in first.command else ""
        return Words(
            f"{title.en}. First step: {first.text.en}" + (f": {command}" if command else ""),
            f"{title.zh}。第一步：{first.text.zh}" + (f"：{command}" if command else ""),
        )
    if abstained:
        return Words(f"The cause cannot be told from this: {abstained[0].en}.", f"现有材料无法判定原因：{abstained[0].zh}。")
    return _healthy(case)


def _healthy(case: Case) -> Words:
    hit = case.startup.hit
    if hit is not None and case.startup.ready:
        return Words(
            f"Nothing wrong was found: the server became ready (line {hit.line.number}) and nothing after it is a fault.",
            f"没有发现问题：服务已就绪（第 {hit.line.number} 行），之后没有故障。",
        )
    return Words("Nothing wrong was found in what was given.", "在所给材料中没有发现问题。")
