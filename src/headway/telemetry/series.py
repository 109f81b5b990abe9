"""Counters, gauges and histograms that many values can be put into at once.

prometheus_client takes two locks for every observed value; a step of 256 sequences observes 256 gaps. These classes
hold plain numbers, are guarded by the lock of `EngineMetrics`, and are turned into prometheus_client families on a scrape.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from math import isinf

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)

from headway.telemetry.metric_families import Family

LabelValues = tuple[str, ...]


class Histogram:
    """Counts per bucket (not cumulative; the last one is +Inf) and the sum."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: Sequence[float]):
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(self.bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """A value equal to a bound belongs to that bound's bucket (`le`)."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def observe_all(self, values: Iterable[float]) -> None:
        for value in values:
            self.observe(value)

    def cumulative(self) -> list[tuple[str, float]]:
        """(le, count) pairs as the text format wants them."""
        running = 0
        pairs = []
        for bound, count in zip((*self.bounds, float("inf")), self.counts, strict=True):
            running += count
            pairs.append(("+Inf" if isinf(bound) else str(float(bound)), float(running)))
        return pairs


class Series:
    """All samples of one family. Not thread-safe by itself."""

    __slots__ = ("bounds", "family", "histograms", "values")

    def __init__(self, family: Family, shared: LabelValues, bounds: Sequence[float]):
        self.family = family
        self.bounds = tuple(bounds)
        self.values: dict[LabelValues, float] = {}
        self.histograms: dict[LabelValues, Histogram] = {}
        own = family.preset if family.labels else ((),)
        for labels in own if family.kind != "info" else ():
            if family.kind == "histogram":
                self.histogram((*shared, *labels))
            else:
                self.values[(*shared, *labels)] = 0.0

    def add(self, labels: LabelValues, amount: float) -> None:
        self.values[labels] = self.values.get(labels, 0.0) + amount

    def set(self, labels: LabelValues, value: float) -> None:
        self.values[labels] = value

    def histogram(self, labels: LabelValues) -> Histogram:
        return self.histograms.setdefault(labels, Histogram(self.bounds))

    def metric(self, name: str) -> Metric:
        """The family as prometheus_client's own record, under `name` (the family's or an alias)."""
        family, names = self.family, self.family.all_labels
        if family.kind == "histogram":
            shown = HistogramMetricFamily(name, family.help, labels=names)
            for labels, histogram in self.histograms.items():
                shown.add_metric(labels, histogram.cumulative(), histogram.total)
            return shown
        kind = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
        plain = kind(name, family.help, labels=names)
        for labels, value in self.values.items():
            plain.add_metric(labels, value)
        return plain
