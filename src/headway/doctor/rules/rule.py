"""A rule: data that documents and finds it, and one pure function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from headway.doctor.case import Case
from headway.doctor.evidence.sight import Sight
from headway.doctor.finding import Abstention, Found
from headway.doctor.words import Words

Category = Literal["memory", "throughput", "ttft", "loading", "network", "quantization", "distributed", "runtime"]


@dataclass(frozen=True, slots=True)
class Rule:
    """`id`: such as `O2`. `title`: a short name. `symptoms`, `why`, `remedy`, `check`: the guide's general text (no numbers
    of a case). `sees`: the sights that `judge` reads from the log (others than those of the facts). `needs`: what has to be
    known, for the guide. `proof`: "live" when a test causes the real fault. `explains`: rules whose findings are
    consequences of this cause and are dropped beside it.

    `judge(case)` is pure: same case, same answer; None = nothing to say.
    """

    id: str
    title: Words
    symptoms: Words
    why: Words
    needs: Words
    remedy: Words
    check: Words
    judge: Callable[[Case], Found | Abstention | None]
    sees: tuple[Sight, ...] = ()
    proof: Literal["live", "log"] = "log"
    explains: tuple[str, ...] = ()
