"""Time to first token: connect + proxy + queue + prefill + first step + proxy."""

from __future__ import annotations

from typing import Final

from headway.doctor.rules.rule import Rule
from headway.doctor.rules.ttft.first_use import RULES as FIRST_USE
from headway.doctor.rules.ttft.hops import RULES as HOPS
from headway.doctor.rules.ttft.phases import RULES as PHASES
from headway.doctor.rules.ttft.prefill import RULES as PREFILL
from headway.doctor.rules.ttft.prefix_reuse import RULES as PREFIX_REUSE
from headway.doctor.rules.ttft.reasoning import RULES as REASONING
from headway.doctor.rules.ttft.waiting import RULES as WAITING

RULES: Final[tuple[Rule, ...]] = (*WAITING, *PREFILL, *PREFIX_REUSE, *HOPS, *FIRST_USE, *PHASES, *REASONING)
