"""The examples of plugins on the page on routing: every type is shown, and every configuration is one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from ruamel.yaml import YAML

from headway.router.config.document.decisions import Decision
from headway.router.config.document.document import Document
from headway.router.config.rules.plugin_configurations import plugin_configurations
from headway.router.plugins.table import PLUGINS
from tests.docs.pages import ROOT, blocks


def shown() -> Iterator[Decision]:
    for block in blocks(ROOT / "docs/routing.md"):
        if block.language == "yaml" and not block.tag:
            routing = YAML(typ="safe").load(block.text) or {}
            yield from (Decision.model_validate(each) for each in routing.get("decisions") or () if each.get("plugins"))


@pytest.mark.parametrize("decision", list(shown()), ids=lambda decision: decision.name)
def test_the_configurations_of_an_example_are_valid(decision: Decision) -> None:
    models = [{"name": "small"}, {"name": "candidate"}]
    document = {"version": "v0.3", "providers": {"models": models}, "routing": {"decisions": [decision.model_dump(exclude_none=True)]}}
    assert [found.message for found in plugin_configurations(Document.model_validate(document))] == []


def test_every_plugin_is_shown() -> None:
    assert {plugin.type for decision in shown() for plugin in decision.plugins or ()} == {kind.type for kind in PLUGINS}
