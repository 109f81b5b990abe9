"""Scraped metrics: one scrape by family, whatever the server's prefix, and what changed between two of them.

A scrape is a mapping `name{label=value,...}` -> value, as the context's `metrics` hold it; `t` is its time in seconds.
Counters may end in `_total` or not. Some servers export a family under several prefixes: one of them is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

from headway.doctor.evidence.context import Context
from headway.doctor.finding import Quote

_PREFIX: Final = re.compile(r"^(vllm|headway|sglang|llamacpp|trtllm|tensorrtllm)[:_]")
_TOO_LARGE: Final = 1e18  # beyond every counter; infinities and what is not a number as well
_LABEL: Final = re.compile(r"([A-Za-z_]\w*)=(\"(?:[^\"\\]|\\.)*\"|[^,}]*)")


@dataclass(frozen=True, slots=True)
class Series:
    """One time series of a scrape: labels and value."""

    labels: Mapping[str, str]
    value: float


@dataclass(frozen=True, slots=True)
class Scrape:
    """`families`: name without prefix -> its series. `t`: seconds from any zero, None when unknown."""

    index: int
    t: float | None
    families: Mapping[str, tuple[Series, ...]] = field(default_factory=dict)

    def series(self, *names: str) -> tuple[Series, ...]:
        """The first family of these names that is there; `x` also finds `x_total`."""
        for name in names:
            found = self.families.get(name) or self.families.get(f"{name}_total")
            if found:
                return found
        return ()

    def total(self, *names: str, **labels: str) -> float | None:
        """Sum over engines and models: for counters and counts."""
        values = [one.value for one in self.series(*names) if _matches(one.labels, labels)]
        return sum(values) if values else None

    def highest(self, *names: str) -> float | None:
        """Largest over engines: for fractions such as cache usage."""
        values = [one.value for one in self.series(*names)]
        return max(values) if values else None

    def by(self, label: str, *names: str) -> dict[str, float]:
        """Sums per value of a label."""
        sums: dict[str, float] = {}
        for one in self.series(*names):
            if label in one.labels:
                sums[one.labels[label]] = sums.get(one.labels[label], 0.0) + one.value
        return sums


def scrapes_of(context: Context) -> list[Scrape]:
    """All samples of the context's `metrics`, in its order."""
    return [read_scrape(index, sample) for index, sample in enumerate(context.items("metrics")) if isinstance(sample, Mapping)]


def read_scrape(index: int, sample: Mapping[str, Any]) -> Scrape:
    """Members that are no numbers are left out; a mapping `name: {a: 1, b: 2}` is a family with two series. The prefix with most families wins where two export the same one."""
    found: dict[str, dict[str, list[Series]]] = {}
    for key, value in _flat(sample):
        prefix, name, labels = _taken_apart(key)
        found.setdefault(name, {}).setdefault(prefix, []).append(Series(labels, value))
    families = {name: _longest(spellings) for name, spellings in found.items()}
    time = sample.get("t", sample.get("time_s"))
    return Scrape(index, float(time) if isinstance(time, (int, float)) and not isinstance(time, bool) and abs(time) < _TOO_LARGE else None, families)


def _flat(sample: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for key, value in sample.items():
        members = {f"{key}{{of={name}}}": member for name, member in value.items()} if isinstance(value, Mapping) else {str(key): value}
        for name, member in members.items():
            if isinstance(member, (int, float)) and not isinstance(member, bool) and abs(member) < _TOO_LARGE:
                yield name, float(member)


def _longest(spellings: Mapping[str, Sequence[Series]]) -> tuple[Series, ...]:
    longest: Sequence[Series] = ()
    for series in spellings.values():
        longest = series if len(series) > len(longest) else longest
    return tuple(longest)


@lru_cache(maxsize=65536)
def _taken_apart(key: str) -> tuple[str, str, Mapping[str, str]]:
    """`vllm:x{a="b",le=0.5}` -> (`vllm`, `x`, {a: b, le: 0.5})."""
    name, _, rest = key.partition("{")
    prefix = _PREFIX.match(name)
    bare = name[prefix.end() :] if prefix else name
    labels = {label: value.strip().strip('"') for label, value in _LABEL.findall(rest)}
    return prefix[0] if prefix else "", bare, labels


def _matches(labels: Mapping[str, str], wanted: Mapping[str, str]) -> bool:
    return all(labels.get(name) == value for name, value in wanted.items())


@dataclass(frozen=True, slots=True)
class Span:
    """What happened from the first scrape to the last; with one scrape, since the server started (`since_start`).

    `seconds`: None when it is unknown, as always for a single scrape.
    """

    first: Scrape | None
    last: Scrape
    quote: Quote

    @property
    def since_start(self) -> bool:
        return self.first is None

    @property
    def seconds(self) -> float | None:
        if self.first is None or self.first.t is None or self.last.t is None or self.last.t <= self.first.t:
            return None
        return self.last.t - self.first.t

    def grown(self, *names: str, **labels: str) -> float | None:
        """Growth of a counter; one that fell was restarted and grew from zero."""
        now = self.last.total(*names, **labels)
        before = self.first.total(*names, **labels) if self.first is not None else 0.0
        return None if now is None else grown(before, now)

    def rate(self, *names: str) -> float | None:
        growth, seconds = self.grown(*names), self.seconds
        return growth / seconds if growth is not None and seconds else None

    def grown_by(self, label: str, *names: str) -> dict[str, float]:
        now = self.last.by(label, *names)
        before = self.first.by(label, *names) if self.first is not None else {}
        return {value: growth for value, total in now.items() if (growth := grown(before.get(value, 0.0), total)) is not None}

    def mean(self, histogram: str) -> float | None:
        """Mean of what was observed in the span; also from a ready-made `_avg`, `_mean` or plain gauge."""
        count, total = self.grown(f"{histogram}_count"), self.grown(f"{histogram}_sum")
        if count and total is not None:
            return total / count
        return self.last.highest(f"{histogram}_avg", f"{histogram}_mean", f"{histogram}_p50", histogram)

    def quantile(self, histogram: str, q: float) -> float | None:
        """By linear interpolation in its bucket, as Prometheus' histogram_quantile; the last finite bound above that."""
        counts = self.grown_by("le", f"{histogram}_bucket")
        bounds = sorted((float(le.replace("+Inf", "inf")), count) for le, count in counts.items() if _is_bound(le))
        if not bounds or bounds[-1][1] <= 0:
            return self.last.highest(f"{histogram}_p{round(q * 100)}")
        wanted, below, low = q * bounds[-1][1], 0.0, 0.0
        for bound, count in bounds:
            if count >= wanted:
                if bound == float("inf"):
                    return low
                return low + (bound - low) * (wanted - below) / (count - below) if count > below else bound
            below, low = count, bound
        return low


def span_of(context: Context) -> Span | None:
    """Over all scrapes of the context, None when it has none with a family of a server."""
    scrapes = scrapes_of(context)
    return span_between(context, scrapes) if scrapes else None


def span_between(context: Context, scrapes: Sequence[Scrape]) -> Span:
    first = scrapes[0] if len(scrapes) > 1 else None
    return Span(first, scrapes[-1], context.quote(f"metrics.{scrapes[-1].index}", _shown(scrapes[-1])))


def quote_metrics(context: Context, scrape: Scrape, *names: str) -> Quote:
    """The named families of one scrape, as `name value` pairs."""
    return context.quote(f"metrics.{scrape.index}", _shown(scrape, names))


def _shown(scrape: Scrape, names: Sequence[str] = ()) -> str:
    pairs = [
        f"{name} {one.value:g}"
        for name, series in scrape.families.items()
        for one in series[:2]
        if not name.endswith(("_bucket", "_created")) and (not names or name in names or name.removesuffix("_total") in names)
    ]
    time = "" if scrape.t is None else f"t={scrape.t:g} "
    return time + ", ".join(pairs[:8])


def grown(before: float | None, now: float | None) -> float | None:
    if before is None or now is None:
        return None
    return now - before if now >= before else now


def _is_bound(text: str) -> bool:
    try:
        float(text.replace("+Inf", "inf"))
    except ValueError:
        return False
    return True
