"""What a model runtime, or the router for it, says about one model: the phrase, the model, and whether it passed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.log.line import Hit
from headway.doctor.evidence.masking import mask
from headway.doctor.evidence.sight import Sight, sight
from headway.doctor.finding import Quote
from headway.doctor.words import Words

READY: Final = sight(
    ": ready on ",
    " is ready: ",
    "router ready",
    "All model deployments are ready",
    pattern=r"model (?P<model>\S+): ready on|(?:^|model )(?P<other>\S+) is ready: |router ready|All model deployments are ready",
)
RETRYING: Final = sight("retrying after ", pattern=r"retrying after (?P<error>.*?) ?\(attempt (?P<attempt>\d+) of (?P<attempts>\d+)\)")
_MODEL: Final = re.compile(
    r"model (?P<a>[\w./@\-]+?):? (?:failed to load|retrying after)|(?:^|[\s\"])(?P<b>[\w./@\-]+) failed to load:|model deployment (?P<c>[\w./@\-]+):"
    r"|deployments?[. ](?P<d>[\w\-]+)[.:]"
)
_ATTEMPT: Final = re.compile(r" ?\(attempt (\d+) of (\d+)\)")


@dataclass(frozen=True, slots=True)
class Statement:
    """`rest`: the line's text behind the phrase. `model`: its name, "" when the line has none. `times`: how often it was
    said. `attempt`: the last (i, n) of `attempt i of n`, None when it is not being retried."""

    match: re.Match[str]
    rest: str
    model: str
    quote: Quote
    line: int | None
    times: int = 1
    attempt: tuple[int, int] | None = None

    def __getitem__(self, group: str) -> str:
        return mask(self.match[group] or "") if group in self.match.re.groupindex else ""


def stated(case: Case, *phrases: Sight) -> Statement | None:
    """The first statement that did not pass by itself: a model that became ready afterwards is no fault."""
    hits = [hit for hit in case.log.hits(*phrases) if not became_ready(case, model_of(hit), hit)]
    if hits:
        first, last = hits[0], hits[-1]
        told = _ATTEMPT.search(last.line.text) or next((found for hit in reversed(hits) if (found := _ATTEMPT.search(hit.line.text))), None)
        rest = _ATTEMPT.sub("", behind(first))
        attempt = (int(told[1]), int(told[2])) if told else None
        return Statement(first.match, rest.strip(" :"), model_of(first), first.quote(), first.line.number, len(hits), attempt)
    return next(_in_probes(case, phrases), None)


def _in_probes(case: Case, phrases: tuple[Sight, ...]) -> Iterator[Statement]:
    """Checks already made, as the context has them: answers of /v1/models and the like."""
    for index, probe in enumerate(case.context.items("host.probes")):
        text = probe if isinstance(probe, str) else str(probe)
        for phrase in phrases:
            if match := phrase.pattern.search(text):
                start = max(0, match.start() - 80)
                found = _MODEL.search(text)
                model = next((group for group in found.groups() if group), "") if found else ""
                yield Statement(
                    match,
                    mask(text[match.end() : match.end() + 400]).strip(" :"),
                    model,
                    case.context.quote(f"host.probes.{index}", text[start : start + 220]),
                    None,
                )


def behind(hit: Hit) -> str:
    """What stands behind the match: in the JSON member that holds it, else in the line."""
    for value in hit.line.fields.values():
        if isinstance(value, str) and (found := hit.match.re.search(value)):
            return mask(value[found.end() :])
    return mask(hit.line.text[hit.match.end() :])


def called(name: str, en: str, zh: str) -> Words:
    """A name, or words for a thing without one."""
    return Words(name or en, name or zh)


def model_of(hit: Hit) -> str:
    """The deployment or model that a line speaks of."""
    named = hit.line.fields.get("deployment")
    if isinstance(named, str):
        return named
    found = _MODEL.search(hit.line.text)
    return next((group for group in found.groups() if group), "") if found else ""


def became_ready(case: Case, model: str, after: Hit) -> bool:
    """Whether this model, or all of the router's, became ready after a line."""
    for hit in case.log.hits(READY):
        if hit.line.source != after.line.source or hit.line.number <= after.line.number:
            continue
        named = hit["model"] or hit["other"]
        if not named or not model or named == model or model.endswith(f"/{named}"):
            return True
    return False
