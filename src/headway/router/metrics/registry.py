"""RouterMetrics: the families of the table, kept for Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.exposition import generate_latest

from headway.router.metrics.families import FAMILIES, Family


class RouterMetrics:
    """Each call names a family of the table and gives its labels in the table's order. Any thread may call."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._families = {family.name: _made(family, self.registry) for family in FAMILIES}
        self._children: dict[tuple[str, tuple[str, ...]], Counter | Gauge | Histogram] = {}
        ProcessCollector(registry=self.registry)

    def count(self, name: str, *labels: str, by: float = 1) -> None:
        child = self._child(name, labels)
        assert isinstance(child, Counter)
        child.inc(by)

    def set(self, name: str, value: float, *labels: str) -> None:
        child = self._child(name, labels)
        assert isinstance(child, Gauge)
        child.set(value)

    def add(self, name: str, by: float, *labels: str) -> None:
        """Move a gauge."""
        child = self._child(name, labels)
        assert isinstance(child, Gauge)
        child.inc(by)

    def observe(self, name: str, value: float, *labels: str) -> None:
        child = self._child(name, labels)
        assert isinstance(child, Histogram)
        child.observe(value)

    def forget(self, name: str, *labels: str) -> None:
        """Drop the series of something that is gone (a removed deployment)."""
        if self._children.pop((name, labels), None) is not None:
            self._families[name].remove(*labels)

    def value(self, name: str, *labels: str) -> float:
        """The current number of a counter or gauge; for histograms the count."""
        for metric in self._families[name].collect():
            wanted = dict(zip(self._families[name]._labelnames, labels, strict=True))
            for sample in metric.samples:
                if sample.labels == wanted and sample.name.endswith(("_total", "_count", metric.name)):
                    return sample.value
        return 0.0

    def text(self) -> bytes:
        return generate_latest(self.registry)

    def _child(self, name: str, labels: tuple[str, ...]) -> Counter | Gauge | Histogram:
        key = name, labels
        child = self._children.get(key)
        if child is None:
            family = self._families[name]
            child = self._children[key] = family.labels(*labels) if labels else family
        return child


def _made(family: Family, registry: CollectorRegistry) -> Counter | Gauge | Histogram:
    if family.kind == "counter":
        return Counter(family.name, family.help, family.labels, registry=registry)
    if family.kind == "gauge":
        return Gauge(family.name, family.help, family.labels, registry=registry)
    return Histogram(family.name, family.help, family.labels, registry=registry, buckets=family.buckets)
