"""What became of the tiny request that `headway doctor serve` sends itself."""

from __future__ import annotations

from typing import Final

from headway.doctor.evidence.sight import sight

UNANSWERED: Final = sight("the doctor's own request", pattern=r"the doctor's own request of (?P<tokens>\d+) tokens got no token within (?P<seconds>[\d.]+) s")
SLOW_ANSWER: Final = sight("the doctor's own request", pattern=r"the doctor's own request .* was not complete after (?P<seconds>[\d.]+) s: (?P<pieces>\d+) pieces")
SIGHTS: Final = (UNANSWERED, SLOW_ANSWER)
