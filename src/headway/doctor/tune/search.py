"""The search: from a start, one knob at a time, up and down from where it stands, until a round brings nothing.

Two knobs can hold each other back (a larger batch needs a larger token budget, and neither helps alone). When a round
brings nothing, pairs of knobs are moved together, and a move that helps is followed as far as it goes.

It is a plain function of a `measure` that gives one run of one setting, so that it can be tried on made-up machines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final

from headway.doctor.tune.outcome import NO_GAIN, Gain, Outcome, compare, holds
from headway.doctor.tune.setting import Knob, Setting, with_value

Measure = Callable[[Setting], Outcome]
_SKIPS: Final = 2  # values in a row that bring nothing before a direction is given up


@dataclass(frozen=True, slots=True)
class Effort:
    """`first`: runs before a setting is judged at all; `most`: runs for one that stays unclear; `trials`: settings in all;
    `confirm`: runs of start and best, taking turns, at the end."""

    first: int = 2
    most: int = 5
    trials: int = 40
    confirm: int = 5


@dataclass(frozen=True, slots=True)
class Step:
    """What was tried and what became of it: better | worse | unclear | cannot run."""

    setting: Setting
    verdict: str
    why: str = ""
    """Of one that cannot run."""


@dataclass(slots=True)
class Tuned:
    """`best` equals `start` when nothing beat it outside the noise. `gain`: of the confirming runs; None when the start cannot
    run."""

    start: Setting
    best: Setting
    gain: Gain | None
    steps: list[Step] = field(default_factory=list)
    runs: dict[Setting, list[Outcome]] = field(default_factory=dict)
    ended: str = "no knob brings anything any more"

    def failure(self, setting: Setting) -> str:
        """Why a setting cannot run, "" when it can."""
        return next((run.failure for run in self.runs.get(setting, ()) if run.failure), "")


def tune(start: Setting, knobs: Sequence[Knob], measure: Measure, effort: Effort, seen: Callable[[Step], None] = lambda step: None) -> Tuned:
    """Raises nothing of its own; a start that cannot run is beaten by anything that can."""
    tuned = Tuned(start, start, NO_GAIN)
    _runs(tuned, start, measure, effort.first + 1)
    trial = _Trials(tuned, measure, effort, seen)
    while trial.left:
        climbed = [_climb(trial, knob) for knob in knobs]  # every knob has its turn in a round
        if not any(climbed) and not _together(trial, knobs):
            break
    if not trial.left:
        tuned.ended = f"{effort.trials} settings were tried"
    _confirm(tuned, measure, effort)
    return tuned


class _Trials:
    """Settings that are tried against the best so far, up to a number."""

    def __init__(self, tuned: Tuned, measure: Measure, effort: Effort, seen: Callable[[Step], None]) -> None:
        self.tuned, self._measure, self._effort, self._seen = tuned, measure, effort, seen

    @property
    def left(self) -> int:
        return self._effort.trials - len(self.tuned.steps)

    def better(self, setting: Setting) -> bool:
        """Try it unless it was tried before; it becomes the best when it is."""
        if setting in self.tuned.runs or not self.left:
            return False
        verdict = _judge(self.tuned, setting, self._measure, self._effort)
        step = Step(setting, verdict, self.tuned.failure(setting))
        self.tuned.steps.append(step)
        if verdict == "better":
            self.tuned.best = setting
        self._seen(step)
        return verdict == "better"


def _climb(trial: _Trials, knob: Knob) -> bool:
    """Both directions from the current value; True when something was better."""
    before = trial.tuned.best
    for values in _directions(knob, dict(before).get(knob.name)):
        fruitless = 0
        for value in values:
            fruitless = 0 if trial.better(with_value(trial.tuned.best, knob.name, value)) else fruitless + 1
            if fruitless >= _SKIPS:
                break
    return trial.tuned.best != before


def _together(trial: _Trials, knobs: Sequence[Knob]) -> bool:
    """One step of two knobs at once; the first pair that helps is followed."""
    for first, second in combinations(knobs, 2):
        for ups in ((1, 1), (-1, -1), (1, -1), (-1, 1)):
            moved = _moved(trial.tuned.best, (first, second), ups)
            if moved is None or not trial.better(moved):
                continue
            while (moved := _moved(trial.tuned.best, (first, second), ups)) is not None and trial.better(moved):
                pass
            return True
    return False


def _moved(setting: Setting, knobs: tuple[Knob, Knob], ups: tuple[int, int]) -> Setting | None:
    """Each knob one value up or down; None when one has none there."""
    for knob, up in zip(knobs, ups, strict=True):
        current = dict(setting).get(knob.name)
        index = knob.values.index(current) + up if current in knob.values else -1
        if not 0 <= index < len(knob.values):
            return None
        setting = with_value(setting, knob.name, knob.values[index])
    return setting


def _directions(knob: Knob, current: str | None) -> Iterator[Sequence[str]]:
    """Upwards and downwards from the current value; all values, from the largest, when it is not among them."""
    if current not in knob.values:
        yield from (tuple(reversed(knob.values)),)
        return
    index = knob.values.index(current)
    yield knob.values[index + 1 :]
    yield tuple(reversed(knob.values[:index]))


def _judge(tuned: Tuned, setting: Setting, measure: Measure, effort: Effort) -> str:
    """Compare with the best so far, measuring again while it is unclear; the best gets as many runs."""
    for runs in range(effort.first, effort.most + 1):
        new = _runs(tuned, setting, measure, runs)
        if any(run.failure for run in new):
            return "cannot run"
        old = _runs(tuned, tuned.best, measure, min(runs, effort.most))
        verdict = compare(new, old)
        if verdict != "unclear":
            return verdict
    return "unclear"


def _runs(tuned: Tuned, setting: Setting, measure: Measure, wanted: int) -> list[Outcome]:
    """At least `wanted` runs; a setting that cannot run is asked once."""
    runs = tuned.runs.setdefault(setting, [])
    while len(runs) < wanted and not any(run.failure for run in runs):
        runs.append(measure(setting))
    return runs


def _confirm(tuned: Tuned, measure: Measure, effort: Effort) -> None:
    """Fresh runs of start and best in turns, so that a drift of the machine hits both; what does not hold is taken back.

    The runs of the search are not used: the best was chosen because they were good.
    """
    if tuned.best == tuned.start:
        return
    if any(run.failure for run in tuned.runs[tuned.start]):
        tuned.gain = None
        return
    fresh: dict[Setting, list[Outcome]] = {tuned.start: [], tuned.best: []}
    for _ in range(effort.confirm):
        for setting in fresh:
            fresh[setting].append(measure(setting))
    for setting, runs in fresh.items():
        tuned.runs[setting] += runs
    tuned.gain = holds(fresh[tuned.best], fresh[tuned.start])
    if tuned.gain is NO_GAIN:
        tuned.best, tuned.ended = tuned.start, "the gain did not hold when it was measured again"
