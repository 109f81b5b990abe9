"""Every value of the chart does something."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.examples.rendered_chart import CHART, render

DEFAULTS: dict[str, Any] = yaml.safe_load((CHART / "values.yaml").read_text())
# What makes every part of the chart appear.
EVERYTHING: dict[str, Any] = {
    "engine": {"autoscaling": {"enabled": True}, "apiKey": {"secret": "a"}},
    "runtime": {"replicas": 2, "apiKey": {"secret": "b"}},
    "models": {"token": {"secret": "c"}},
    "proxy": {"http": "http://one:1", "https": "http://two:1"},
    "monitoring": {"enabled": True},
}
# What stands in the place of an empty list or mapping.
OTHER: dict[str, Any] = {
    "pullSecrets": [{"name": "x"}], "volume": {"hostPath": {"path": "/x"}}, "cache": {"hostPath": {"path": "/x"}}, "hub": "https://x", "http": "http://x:1",
    "https": "http://x:2", "args": ["--x"], "env": [{"name": "X", "value": "x"}], "volumes": [{"name": "x", "emptyDir": {}}],
    "volumeMounts": [{"name": "x", "mountPath": "/x"}], "nodeSelector": {"x": "y"}, "tolerations": [{"operator": "Exists"}], "affinity": {"podAffinity": {}},
    "labels": {"x": "y"}, "models": [{"model": "x", "name": "x"}], "waitingRequests": "9", "kvCacheUsage": "500m", "interval": "9s", "pullPolicy": "Always",
}  # fmt: skip


def leaves(values: dict[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, value in values.items():
        if isinstance(value, dict) and value and name not in ("requests", "limits"):
            yield from leaves(value, (*path, name))
        else:
            yield (*path, name)


def at(values: dict[str, Any], path: tuple[str, ...]) -> Any:
    found: Any = values
    for name in path:
        found = found.get(name) if isinstance(found, dict) else None
    return found


def with_value(values: dict[str, Any], path: tuple[str, ...], value: Any) -> dict[str, Any]:
    changed = copy.deepcopy(values)
    place = changed
    for name in path[:-1]:
        place = place.setdefault(name, {})
    place[path[-1]] = value
    return changed


def another(name: str, value: Any) -> Any:
    if name in OTHER:
        return OTHER[name]
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 5  # a probe's period
    if isinstance(value, dict):
        return {**value, "cpu": "77"}
    return "other"


@pytest.mark.parametrize("path", list(leaves(DEFAULTS)), ids=".".join)
def test_a_value_changes_what_is_rendered(path: tuple[str, ...]) -> None:
    base = with_value(EVERYTHING, ("engine", "autoscaling", "enabled"), path != ("engine", "replicas"))
    now = at(base, path)
    other = another(path[-1], at(DEFAULTS, path) if now is None else now)
    assert render(with_value(base, path, other)) != render(base)
