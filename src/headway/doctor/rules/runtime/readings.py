"""Numbers of `/metrics`, whether the context has them or somebody pasted them into the log."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from headway.doctor.case import Case
from headway.doctor.evidence.sight import sight
from headway.doctor.finding import Quote

PRINTED: Final = sight(
    "vsr_model_runtime_",
    "vllm_srun_",
    pattern=r"^(?P<name>(?:vsr_model_runtime|vllm_srun)_\w+)(?:\{(?P<labels>[^}]*)\})? (?P<value>[\d.]+(?:[eE][+-]?\d+)?)\s*$",
)
_LABEL: Final = re.compile(r"\b(\w{1,60})=\"?([^\",}]*)\"?")
_NAME: Final = re.compile(r"^(?P<name>\w+)(?:\{(?P<labels>.*)\})?$")


@dataclass(frozen=True, slots=True)
class Reading:
    """One value of one series. `sample`: its number in time order."""

    name: str
    labels: Mapping[str, str]
    value: float
    sample: int
    quote: Quote

    def has(self, **labels: str) -> bool:
        return all(self.labels.get(name) == value for name, value in labels.items() if value)


def readings(case: Case, *names: str) -> list[Reading]:
    """All values of these metrics, in time order."""
    found: list[Reading] = []
    for index, sample in enumerate(case.context.items("metrics")):
        if not isinstance(sample, Mapping):
            continue
        for key, value in sample.items():
            parsed = _NAME.match(str(key))
            if parsed and parsed["name"] in names and isinstance(value, (int, float)) and not isinstance(value, bool):
                quote = case.context.quote(f"metrics.{index}", f"{key}: {value}")
                found.append(Reading(parsed["name"], dict(_LABEL.findall(parsed["labels"] or "")), float(value), index, quote))
    for hit in case.log.hits(PRINTED):
        if hit["name"] in names:
            found.append(Reading(hit["name"], dict(_LABEL.findall(hit["labels"])), float(hit["value"]), hit.line.number, hit.quote()))
    return found


def last(case: Case, name: str, **labels: str) -> Reading | None:
    return next((each for each in reversed(readings(case, name)) if each.has(**labels)), None)


def growth(case: Case, name: str, **labels: str) -> Reading | None:
    """The last reading, its value replaced by what the counter grew by when there are several samples of the series."""
    series = [each for each in readings(case, name) if each.has(**labels)]
    if not series:
        return None
    end = series[-1]
    same = [each for each in series if each.labels == end.labels]
    grown = end.value - same[0].value if len(same) > 1 and end.value >= same[0].value else end.value
    return Reading(end.name, end.labels, grown, end.sample, end.quote)


def phase_seconds(case: Case, phase: str, deployment: str = "") -> tuple[float, Quote] | None:
    """Mean seconds that the worker spent in a phase of a call (parse, tokenize, queue, forward, ...)."""
    name = "vsr_model_runtime_server_seconds"
    for suffix in ("_p95", "_avg", "_mean", ""):
        for each in reversed(readings(case, name + suffix)):
            if each.labels.get("phase") == phase and each.has(deployment=deployment if "deployment" in each.labels else ""):
                return each.value, each.quote
    total, count = last(case, f"{name}_sum", phase=phase), last(case, f"{name}_count", phase=phase)
    if total and count and count.value:
        return total.value / count.value, total.quote
    return None


def transport_seconds(case: Case) -> tuple[float, Quote] | None:
    """Mean seconds of a call that were spent outside the worker."""
    name = "vsr_model_runtime_transport_seconds"
    for suffix in ("_p95", "_avg", "_mean", ""):
        if each := last(case, name + suffix):
            return each.value, each.quote
    total, count = last(case, f"{name}_sum"), last(case, f"{name}_count")
    return (total.value / count.value, total.quote) if total and count and count.value else None
