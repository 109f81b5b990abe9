"""What a user says is wrong: which symptom is looked for. Never evidence of a cause."""

from __future__ import annotations

import re
from typing import Final, Literal

from headway.doctor.evidence.context import Context

Symptom = Literal["first token", "throughput", "growing memory", "answer quality"]

_SAID: Final[dict[Symptom, re.Pattern[str]]] = {
    "first token": re.compile(r"(?i)ttft|first[ -](?:token|word|byte|chunk)|time to first|首字|首个|首\s*token|第一个\s*(?:字|token)|首包"),
    "throughput": re.compile(
        r"(?i)throughput|tok(?:en)?s?\s?(?:/|per)\s?s|t/s|tps|slow|speed|under-?utili[sz]ed|utili[sz]ation|吞吐|慢|速度|利用率|并发|提速|加速|快|faster|scal(?:e|ing)"
    ),
    "growing memory": re.compile(r"(?i)\bleak|memory (?:keeps|grows|creeps|never)|rss|泄漏|泄露|一直涨|不断增长|越来越(?:多|高|大)|持续(?:上涨|增长)|内存(?:上涨|增长|不释放)|不释放"),
    "answer quality": re.compile(
        r"(?i)quality|accura|worse|wrong answers?|(?:answers?|outputs?|results?|replies) (?:became|become|are|is|got|get|turn(?:ed)?|went) (?:\w+ )?(?:wrong|bad|poor|broken|strange|weird)|garbage|gibberish|nonsense|dumb|degrad|hallucinat|perplexity|score|benchmark drop|质量|精度|准确|变差|变笨|乱码|胡言|答非所问|效果"
    ),
}


def complains_of(context: Context, symptom: Symptom) -> bool:
    """Whether the user names this symptom. A complaint about the first token is none about throughput."""
    said = context.text("said")
    if symptom == "throughput" and _SAID["first token"].search(said):
        return False
    return bool(_SAID[symptom].search(said))
