"""A tuning from start to end: search over real runs, every run recorded, the result as words and numbers."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headway.doctor.tune.outcome import Outcome, interval
from headway.doctor.tune.record import Record
from headway.doctor.tune.search import Effort, Step, Tuned, tune
from headway.doctor.tune.server_runs import ServerRuns
from headway.doctor.tune.setting import Goal, Knob, Setting, flag_line
from headway.doctor.words import Words


@dataclass(frozen=True, slots=True)
class Plan:
    """`command`: words that start the server, `shown`: the same as people type them. `identity`: what makes runs of a record comparable."""

    command: Sequence[str]
    shown: Sequence[str]
    goal: Goal
    start: Setting
    knobs: Sequence[Knob]
    effort: Effort
    identity: dict[str, Any]


def run(plan: Plan, runs: ServerRuns, record_path: Path, seen: Callable[[Step], None]) -> tuple[Tuned, Record]:
    """Raises ConfigError when the record is of another tuning. The server is stopped however it ends."""
    record = Record(record_path, plan.identity)

    def measure(setting: Setting) -> Outcome:
        known = record.next(setting)
        if known is not None:
            runs.skip(setting)
            return known
        outcome, details = runs.run(setting)
        record.add(setting, outcome, details)
        return outcome

    try:
        return tune(plan.start, plan.knobs, measure, plan.effort, seen), record
    finally:
        runs.close()


_UNITS = {"throughput": "tokens/s", "ttft": "s to the first token", "itl": "s between tokens"}


def result(plan: Plan, tuned: Tuned) -> dict[str, Any]:
    """The outcome as plain data: flags, the measured gain with its interval, every setting with its runs."""
    sign = 1 if plan.goal == "throughput" else -1
    return {
        "goal": plan.goal,
        "command": shlex.join(plan.shown),
        "start": flag_line(tuned.start),
        "best": flag_line(tuned.best),
        "changed": tuned.best != tuned.start,
        "gain_percent": None if tuned.gain is None else round(tuned.gain.mean * 100, 1),
        "gain_interval_percent": None if tuned.gain is None else [round(tuned.gain.low * 100, 1), round(tuned.gain.high * 100, 1)],
        "unit": _UNITS[plan.goal],
        "ended": tuned.ended,
        "settings": [_setting(setting, outcomes, sign) for setting, outcomes in tuned.runs.items()],
    }


def _setting(setting: Setting, outcomes: Sequence[Outcome], sign: int) -> dict[str, Any]:
    failure = next((run.failure for run in outcomes if run.failure), "")
    if failure:
        return {"flags": flag_line(setting), "failure": failure}
    found = interval([sign * run.score for run in outcomes])
    half = round(found.half, 4) if found.runs > 1 else None
    return {"flags": flag_line(setting), "mean": round(found.mean, 4), "interval": half, "runs": found.runs, "met": round(min(run.met for run in outcomes), 3)}


def said(plan: Plan, tuned: Tuned) -> Words:
    """The last line: flags with what they bring, or that nothing does."""
    if tuned.best == tuned.start and (why := tuned.failure(tuned.start)):
        return Words(f"No setting could run; the start ended with: {why}", f"没有任何设置能够运行；起始设置的错误：{why}")
    if tuned.best == tuned.start:
        return Words(
            f"No change of flags brings a gain outside the noise ({tuned.ended}); keep {flag_line(tuned.start) or 'the defaults'}.",
            f"没有任何参数改动带来超出噪声的收益（{tuned.ended}）；保持 {flag_line(tuned.start) or '默认值'}。",
        )
    line = shlex.join([*plan.shown, *shlex.split(flag_line(tuned.best))])
    if tuned.gain is None:
        return Words(f"{line}\n(the start could not run)", f"{line}\n（起始参数无法运行）")
    percent, low, high = (100 * value for value in (tuned.gain.mean, tuned.gain.low, tuned.gain.high))
    return Words(
        f"{line}\nmeasured gain: {percent:.1f} % (95 % interval {low:.1f} to {high:.1f} %, {tuned.gain.pairs} pairs of runs in turns)",
        f"{line}\n实测收益：{percent:.1f} %（95 % 置信区间 {low:.1f} 至 {high:.1f} %，{tuned.gain.pairs} 对交替测量）",
    )
