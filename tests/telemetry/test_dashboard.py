"""The Grafana dashboard is current, and Grafana would draw it: places, units, variables, metrics that exist."""

from __future__ import annotations

import json
import re
from itertools import combinations
from pathlib import Path
from typing import Any

from headway.telemetry.dashboard import dashboard
from headway.telemetry.metric_families import FAMILIES

FILE = Path(__file__).parents[2] / "examples" / "grafana" / "headway.json"
BOARD = dashboard()
DRAWN: list[dict[str, Any]] = [panel for panel in BOARD["panels"] if panel["type"] != "row"]
UNITS = {"short", "none", "s", "bytes", "percentunit", "reqps", "ops", "cps"}  # ids of Grafana's unit formats
PROCESS = {"process_resident_memory_bytes", "process_cpu_seconds_total", "process_open_fds"}


def test_the_file_is_current() -> None:
    message = "run: python -m headway.telemetry.dashboard > examples/grafana/headway.json"
    assert json.loads(FILE.read_text(encoding="utf-8")) == BOARD, message


def test_panels_lie_side_by_side() -> None:
    assert len({panel["id"] for panel in BOARD["panels"]}) == len(BOARD["panels"])
    for panel in BOARD["panels"]:
        place = panel["gridPos"]
        assert place["x"] >= 0 < place["w"]
        assert place["x"] + place["w"] <= 24
    for one, other in combinations([panel["gridPos"] for panel in BOARD["panels"]], 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        above = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert beside or above, (one, other)


def test_panels_are_complete() -> None:
    for panel in DRAWN:
        assert panel["title"]
        assert panel["description"].endswith(".")
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS
        assert panel["datasource"]["uid"] == "${datasource}"
        references = [target["refId"] for target in panel["targets"]]
        assert references
        assert len(set(references)) == len(references)
    titles = [panel["title"] for panel in DRAWN]
    assert len(set(titles)) == len(titles)


def test_variables_are_defined_and_used() -> None:
    defined = {variable["name"] for variable in BOARD["templating"]["list"]}
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(DRAWN)))
    assert used - {"__rate_interval"} == defined
    assert BOARD["templating"]["list"][0] == {**BOARD["templating"]["list"][0], "type": "datasource", "query": "prometheus"}


def test_every_metric_exists_and_every_area_is_shown() -> None:
    exposed = PROCESS | {family.exposed for family in FAMILIES}
    exposed |= {f"{f.name}_{part}" for f in FAMILIES if f.kind == "histogram" for part in ("bucket", "sum", "count")}
    shown = {name for panel in DRAWN for target in panel["targets"] for name in re.findall(r"(?:vllm:|http_|process_)\w+", target["expr"])}
    assert shown - exposed == set()
    for area in ("time_to_first_token", "inter_token_latency", "e2e_request_latency", "queue_time", "kv_cache_usage", "prefix_cache_hits",
                 "num_preemptions", "request_success", "generation_tokens", "num_requests_waiting", "http_requests", "admission_rejections"):  # fmt: skip
        assert any(area in name for name in shown), area
