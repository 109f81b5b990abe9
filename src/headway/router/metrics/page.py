"""docs/router-metrics.md, printed from the table of families: `python -m headway.router.metrics.page > docs/router-metrics.md`."""

from __future__ import annotations

import sys

from headway.router.metrics.absent import ABSENT, Absent
from headway.router.metrics.families import FAMILIES, Family

_HEAD = """# Metrics of the router

<!-- Generated from src/headway/router/metrics/families.py by `make docs`. Do not edit. -->

`GET /metrics` on port 9190 (`global.services.observability.metrics`: `bind_address`, else loopback, and `port` move it, `enabled: false` switches it off) answers in the Prometheus text format 0.0.4. A
series appears with its first event. Label values are names of the configuration or words of a fixed list, never something that a client sends. A histogram
`x` appears as `x_bucket`, `x_sum` and `x_count`. The process collector of prometheus_client (`process_*`) is served too. A managed model runtime
has metrics of its own, see [runtime.md](runtime.md); the engine's are in [metrics.md](metrics.md).

| name | kind | labels | meaning |
|---|---|---|---|
"""

_ABSENT_HEAD = """## Not here

vLLM-SR has these families, Headway has nothing to count in them.

| names | why |
|---|---|
"""


def metrics_markdown() -> str:
    """The page as Markdown, ending with a newline."""
    rows = "".join(_row(family) for family in FAMILIES)
    tables = sorted({family.buckets for family in FAMILIES if family.buckets})
    buckets = "".join(_buckets(bounds) for bounds in tables)
    missing = "".join(_missing(each) for each in ABSENT)
    return f"{_HEAD}{rows}\n## Buckets\n\n| families | upper bounds |\n|---|---|\n{buckets}\n{_ABSENT_HEAD}{missing}"


def exposed_name(family: Family) -> str:
    return family.name + ("_total" if family.kind == "counter" else "")


def _row(family: Family) -> str:
    return f"| `{exposed_name(family)}` | {family.kind} | {', '.join(f'`{label}`' for label in family.labels)} | {family.help} |\n"


def _missing(absent: Absent) -> str:
    return f"| `{absent.names}` | {absent.why} |\n"


def _buckets(bounds: tuple[float, ...]) -> str:
    names = ", ".join(f"`{family.name}`" for family in FAMILIES if family.buckets == bounds)
    return f"| {names} | {' '.join(f'{bound:g}' for bound in bounds)} |\n"


if __name__ == "__main__":
    sys.stdout.write(metrics_markdown())
