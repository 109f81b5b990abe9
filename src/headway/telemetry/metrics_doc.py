"""docs/metrics.md, printed from the table of families: `python -m headway.telemetry.metrics_doc > docs/metrics.md`."""

from __future__ import annotations

import sys

from headway.telemetry.metric_families import ENGINE_LABELS, FAMILIES, HTTP_EXCLUDED, PREFIX, UP_TO_CONTEXT, Family

_HEAD = f"""# Metrics

<!-- Generated from src/headway/telemetry/metric_families.py by `make docs`. Do not edit. -->

`GET /metrics` on the API port answers in the Prometheus text format 0.0.4. Families that begin with `{PREFIX}` carry the
labels {" and ".join(f"`{label}`" for label in ENGINE_LABELS)}. All counters are there from the start, at 0. A histogram `x` appears as `x_bucket`, `x_sum`
and `x_count`. Old names show the same numbers once more, for dashboards that still ask for them;
`--no-legacy-metric-names` leaves them out. The process collector of prometheus_client (`process_*`) is served too.

Not counted among the HTTP families: {", ".join(f"`{path}`" for path in sorted(HTTP_EXCLUDED))}.

| name | kind | labels | meaning | old names |
|---|---|---|---|---|
"""


def metrics_markdown() -> str:
    """The page as Markdown, ending with a newline."""
    rows = "".join(_row(family) for family in FAMILIES)
    tables = {family.buckets for family in FAMILIES if family.buckets}
    buckets = "".join(_buckets(bounds) for bounds in sorted(tables, key=str))
    return f"{_HEAD}{rows}\n## Buckets\n\n| families | upper bounds |\n|---|---|\n{buckets}"


def _row(family: Family) -> str:
    total = "_total" if family.kind == "counter" else ""
    labels = ", ".join(f"`{label}`{_values(family)}" for label in family.labels)
    old = ", ".join(f"`{alias}{total}`" for alias in family.aliases)
    return f"| `{family.exposed}` | {family.kind} | {labels} | {family.help} | {old} |\n"


def _values(family: Family) -> str:
    return f" ({', '.join(values[0] for values in family.preset)})" if family.preset else ""


def _buckets(bounds: object) -> str:
    names = ", ".join(f"`{family.name}`" for family in FAMILIES if family.buckets == bounds)
    shown = bounds if bounds == UP_TO_CONTEXT or not isinstance(bounds, tuple) else " ".join(f"{b:g}" for b in bounds)
    return f"| {names} | {shown} |\n"


if __name__ == "__main__":
    sys.stdout.write(metrics_markdown())
