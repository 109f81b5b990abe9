"""Discovery: the same for built-ins and others; conflicts are refused, broken plug-ins named."""

from __future__ import annotations

import pytest

from headway.errors import ConfigError
from headway.runtime.accelerators.accelerator import ACCELERATORS_GROUP
from headway.runtime.engines.engine import ENGINES_GROUP
from headway.runtime.family import FAMILIES_GROUP, ModelFamily
from headway.runtime.plugins import Plugins, PluginSet
from tests.runtime.toy_plugins import ToyFamily, entry, plugins_of


def test_the_built_in_ones_come_through_entry_points() -> None:
    found = PluginSet.installed()
    assert "native" in found.engines.by_name
    assert {"cpu", "cuda", "rocm", "xpu", "mps"} <= found.accelerators.by_name.keys()
    facts = found.engines.by_name["native"].facts
    assert (facts.group, facts.distribution) == (ENGINES_GROUP, "headway")
    for group in (found.families, found.engines, found.accelerators):
        assert group.broken() == []


def test_one_name_with_two_targets_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        Plugins(FAMILIES_GROUP, ModelFamily, [entry(FAMILIES_GROUP, "toy", "ToyFamily"), entry(FAMILIES_GROUP, "toy", "Other")])  # type: ignore[type-abstract]
    assert caught.value.reason == "plugin_conflict"
    assert "ToyFamily" in caught.value.message
    assert "Other" in caught.value.message


def test_the_same_target_twice_is_one_plugin() -> None:
    twice = [entry(FAMILIES_GROUP, "toy", "ToyFamily")] * 2
    assert list(Plugins(FAMILIES_GROUP, ModelFamily, twice).by_name) == ["toy"]  # type: ignore[type-abstract]


@pytest.mark.parametrize(
    ("name", "target", "says"),
    [
        ("gone", "tests.runtime.no_such_module:Thing", "cannot be imported: ModuleNotFoundError"),
        ("wrongbase", "WrongBase", "is no ModelFamily"),
        ("toy", "CallsItselfOtherwise", "calls itself 'otherwise'"),
        ("model", "headway.runtime.family:ModelFamily", "calls itself None"),
    ],
)
def test_broken_plugins_are_named_and_left_out(name: str, target: str, says: str) -> None:
    found = plugins_of(FAMILIES_GROUP, **{name: target, "atoy": "tests.runtime.toy_plugins:ToyFamily"})
    with pytest.raises(ConfigError) as caught:
        _ = found.by_name[name].thing
    assert caught.value.reason == "plugin_broken"
    assert says in caught.value.message
    assert repr(name) in caught.value.message
    assert any(says in sentence for sentence in found.broken())
    assert name not in [plugin.name for plugin in found.usable()]


def test_a_plugin_is_made_once_and_only_when_used() -> None:
    plugin = plugins_of(FAMILIES_GROUP, toy="ToyFamily").by_name["toy"]
    assert plugin.thing is plugin.thing
    assert isinstance(plugin.thing, ToyFamily)
    assert plugins_of(ACCELERATORS_GROUP, gone="no.such:Thing").by_name["gone"].facts.name == "gone"


def test_names_come_in_order_and_unknown_ones_list_them() -> None:
    found = plugins_of(FAMILIES_GROUP, toy="ToyFamily", alpha="ToyFamily")
    assert list(found.by_name) == ["alpha", "toy"]
    with pytest.raises(ConfigError, match=r"no family 'beta'; available: alpha, toy"):
        found.named("beta", "family")
