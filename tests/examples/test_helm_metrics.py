"""What the autoscaler of the chart asks for is made by the adapter's rules from metrics that Headway has."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from headway.telemetry.metric_families import FAMILIES
from tests.examples.prometheus_programs import promtool
from tests.examples.rendered_chart import FOLDER, kind

RULES: list[dict[str, Any]] = yaml.safe_load((FOLDER / "prometheus-adapter.yaml").read_text())["rules"]["custom"]


def series(rule: dict[str, Any]) -> str:
    found = re.match(r"[a-zA-Z_:][\w:]*", rule["seriesQuery"])
    assert found is not None
    return found[0]


def test_the_rules_start_from_gauges_that_exist() -> None:
    gauges = {family.exposed for family in FAMILIES if family.kind == "gauge"}
    assert [series(rule) for rule in RULES if series(rule) not in gauges] == []
    assert all(re.fullmatch(rule["name"]["matches"], series(rule)) for rule in RULES)


def test_the_autoscaler_asks_for_what_the_rules_make() -> None:
    autoscaler = kind("values-fleet", "HorizontalPodAutoscaler")["engine"]["spec"]
    assert {each["pods"]["metric"]["name"] for each in autoscaler["metrics"]} == {rule["name"]["as"] for rule in RULES}
    deployment = kind("values-fleet", "Deployment")["engine"]
    assert autoscaler["scaleTargetRef"] == {"apiVersion": "apps/v1", "kind": "Deployment", "name": deployment["metadata"]["name"]}
    assert "replicas" not in deployment["spec"]  # an upgrade would undo what the autoscaler chose
    going = deployment["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
    assert autoscaler["behavior"]["scaleDown"]["policies"][0]["periodSeconds"] >= going


@pytest.mark.long
def test_promtool_accepts_their_queries(tmp_path: Path) -> None:
    """With the adapter's placeholders filled in, as recording rules."""
    fill = {"<<.LabelMatchers>>": 'namespace="a",pod=~"b|c"', "<<.GroupBy>>": "pod"}
    rules = []
    for rule in RULES:
        query = rule["metricsQuery"].replace("<<.Series>>", series(rule))
        for placeholder, value in fill.items():
            query = query.replace(placeholder, value)
        assert "<<" not in query
        rules += [{"record": rule["name"]["as"], "expr": query}, {"record": rule["name"]["as"] + "_series", "expr": rule["seriesQuery"]}]
    file = tmp_path / "rules.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "adapter", "rules": rules}]}))
    done = promtool("check", "rules", file)
    assert done.returncode == 0, done.stdout + done.stderr
