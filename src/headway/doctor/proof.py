"""Did the fix help? A report that was saved before it, against one made after it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any, Final, Literal

from headway.doctor.case import Case
from headway.doctor.examine import Examined
from headway.doctor.finding import ANSWER_ABOVE
from headway.doctor.report.as_json import report_object
from headway.doctor.words import Language, Words
from headway.errors import DoctorError

Verdict = Literal["fixed", "not fixed", "other cause", "could not tell"]
_VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Proof:
    """`before` and `after`: measure -> value, of the measures that both have."""

    verdict: Verdict
    said: Words
    before: Mapping[str, float]
    after: Mapping[str, float]


def measures(case: Case) -> dict[str, float]:
    """What can be compared before and after: means over the samples and requests of the case. Seconds, tokens per second,
    fractions, counts."""
    columns = {
        "running": [sample.running for sample in case.load],
        "waiting": [sample.waiting for sample in case.load],
        "kv_cache_usage": [sample.usage for sample in case.load],
        "generation_tokens_per_s": [sample.generation_rate for sample in case.load],
        "prompt_tokens_per_s": [sample.prompt_rate for sample in case.load],
        "prefix_hit_rate": [sample.hit_rate for sample in case.load],
        "ttft_s": [row.number("ttft_cli_s", "ttft_srv_s") for row in case.requests],
        "queue_s": [row.number("queue_s") for row in case.requests],
        "inter_token_ms": [row.number("itl_cli_ms", "itl_srv_ms") for row in case.requests],
    }
    known = {name: [value for value in values if value is not None] for name, values in columns.items()}
    found = {name: round(fmean(values), 4) for name, values in known.items() if values}
    counted = [sample.preemptions for sample in case.load if sample.preemptions is not None]
    if len(counted) > 1:
        found["preemptions"] = counted[-1] - counted[0]
    return found


def save(examined: Examined, path: Path, language: Language) -> None:
    """Write what a later `--apply-check` compares with."""
    kept = {"doctor": _VERSION, "report": report_object(examined.report, language), "measures": measures(examined.case)}
    path.write_text(json.dumps(kept, ensure_ascii=False, indent=1), "utf-8")


def check(examined: Examined, path: Path) -> Proof:
    """Compare with a saved report. Raises DoctorError (`saved_report_unreadable`) when `path` is none."""
    before = _read(path)
    first = next((finding for finding in before["report"]["findings"] if finding["confidence"] > ANSWER_ABOVE), None)
    answers = [finding for finding in examined.report.findings if finding.is_answer]
    then, now = before["measures"], measures(examined.case)
    shared = [name for name in then if name in now]
    blind = not shared if then else bool(examined.report.abstained)  # what showed it before is not seen now
    verdict, said = _judged(first, [(finding.rule.id, finding.title) for finding in answers], blind)
    return Proof(verdict, said, {name: then[name] for name in shared}, {name: now[name] for name in shared})


def _judged(first: Mapping[str, Any] | None, now: list[tuple[str, Words]], blind: bool) -> tuple[Verdict, Words]:
    if first is None:
        return "could not tell", Words("The saved report has no finding to compare with.", "保存的报告中没有可比较的发现。")
    rule = first["rule"]
    if any(rule_id == rule for rule_id, _ in now):
        return "not fixed", Words(f"Not fixed: {rule} is still there.", f"未修复：{rule} 依然存在。")
    if now:
        found, title = now[0]
        return "other cause", Words(
            f"{rule} is gone; now {found} ({title.en}) is the first cause.", f"{rule} 已消失；现在的首要原因是 {found}（{title.zh}）。"
        )
    if blind:
        return "could not tell", Words(
            f"{rule} is not seen, but neither is what showed it before: look under the same conditions.", f"没有看到 {rule}，但也没有看到之前显示它的那些数据：请在相同条件下再检查。"
        )
    return "fixed", Words(f"Fixed: {rule} is gone and nothing else is wrong.", f"已修复：{rule} 已消失，没有其他问题。")


def _read(path: Path) -> dict[str, Any]:
    try:
        kept = json.loads(path.read_text("utf-8"))
        if kept["doctor"] == _VERSION and isinstance(kept["report"]["findings"], list) and isinstance(kept["measures"], dict):
            return dict(kept)
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        pass
    raise DoctorError(f"{path} is no report of the doctor", reason="saved_report_unreadable", fix="Give a file that `headway doctor ... --save FILE` wrote.")
