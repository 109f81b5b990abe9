"""examples/prometheus, checked by promtool."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tests.examples.prometheus_programs import promtool

pytestmark = pytest.mark.long
EXAMPLES = Path(__file__).parents[2] / "examples" / "prometheus"
TESTS = Path(__file__).with_name("alerts_test.yml")


def test_promtool_accepts_the_configuration_and_the_rules() -> None:
    done = promtool("check", "config", EXAMPLES / "prometheus.yml")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "SUCCESS: 9 rules found" in done.stdout


def test_alerts_fire_when_they_should_and_only_then(tmp_path: Path) -> None:
    tests = tmp_path / "alerts_test.yml"
    tests.write_text(TESTS.read_text().replace("ALERTS\n", f"{EXAMPLES / 'alerts.yml'}\n", 1))
    done = promtool("test", "rules", tests)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_is_tested() -> None:
    names = [rule["alert"] for group in yaml.safe_load((EXAMPLES / "alerts.yml").read_text())["groups"] for rule in group["rules"]]
    assert [name for name in names if f'alertname="{name}"' not in TESTS.read_text()] == []
