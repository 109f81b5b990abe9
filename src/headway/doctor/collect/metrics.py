"""Scrapes of a server's `/metrics`: the text format to name -> value, and a watch over an interval."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import httpx
from prometheus_client.parser import text_string_to_metric_families

from headway.doctor.collect.bounded_answer import ask
from headway.doctor.collect.interruption import interrupted
from headway.errors import DoctorError

_SAMPLES_AT_MOST: Final = 20_000


def parse_metrics(text: str) -> dict[str, float]:
    """`name{label=value,...}` -> value, as the context's `metrics` have them. Raises DoctorError (`metrics_invalid`)."""
    values: dict[str, float] = {}
    try:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                if not sample.name.endswith("_created") and len(values) < _SAMPLES_AT_MOST:
                    values[_key(sample.name, sample.labels)] = sample.value
    except (ValueError, KeyError, IndexError) as error:
        raise DoctorError(f"the metrics are not in Prometheus' text format: {error}", reason="metrics_invalid") from error
    return values


def _key(name: str, labels: Mapping[str, str]) -> str:
    return name if not labels else name + "{" + ",".join(f"{key}={value}" for key, value in sorted(labels.items())) + "}"


def scrape(client: httpx.Client, url: str) -> dict[str, float]:
    """Raises DoctorError (`metrics_unreachable`, `metrics_invalid`)."""
    try:
        found = ask(client, f"{url}/metrics")
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise _unreachable(url, f"does not answer: {str(error) or type(error).__name__}") from error
    if found.status != 200:
        raise _unreachable(url, f"answers with HTTP {found.status}")
    return parse_metrics(found.text)


def _unreachable(url: str, why: str) -> DoctorError:
    return DoctorError(f"{url}/metrics {why}", reason="metrics_unreachable", fix="Name the server's own address; its /metrics is on the same port.")


def watch(
    client: httpx.Client, url: str, samples: int, interval: float, seen: Callable[[Mapping[str, Any]], None] = lambda sample: None
) -> list[dict[str, Any]]:
    """`samples` scrapes, `interval` seconds apart, each with its `t` in seconds since the first. `seen` is called with each.
    Ctrl-C ends it early: what was taken by then is the result."""
    taken: list[dict[str, Any]] = []
    start = time.monotonic()
    with interrupted() as told:
        for index in range(samples):
            if index and told.wait(max(0.0, start + index * interval - time.monotonic())):
                break
            taken.append({"t": round(time.monotonic() - start, 2), **scrape(client, url)})
            seen(taken[-1])
    return taken
