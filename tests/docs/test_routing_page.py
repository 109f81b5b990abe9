"""The examples of the page on routing: each is read as the part of a configuration that it is."""

from __future__ import annotations

import pytest
from ruamel.yaml import YAML

from headway.router.config.document.document import Document
from headway.router.config.rules.projections import projections
from headway.router.config.rules.rule_tree import condition_references
from headway.router.decisions.engine import compile_decisions
from headway.router.policy.document import Policy
from headway.router.signals.kind import Recipe
from headway.router.signals.table import KIND_OF_TYPE
from tests.docs.pages import ROOT, Block, blocks

EXAMPLES = [block for block in blocks(ROOT / "docs/routing.md") if block.language == "yaml" and not block.tag]


@pytest.mark.parametrize("block", EXAMPLES, ids=str)
def test_an_example_of_routing(block: Block) -> None:
    document = Document.model_validate({"version": "v0.3", "routing": YAML(typ="safe").load(block.text)})
    assert document.routing is not None
    assert [str(each) for rule in (condition_references, projections) for each in rule(document)] == []
    recipe = Recipe(document, document.routing)
    compile_decisions(recipe)
    for kind in KIND_OF_TYPE.values():
        rules = getattr(document.routing.signals, kind.collection, None) if document.routing.signals else None
        if rules and kind.scale is None:
            assert kind.compile(rules, recipe)


def test_the_example_of_a_policy() -> None:
    (block,) = [block for block in blocks(ROOT / "docs/routing.md") if block.tag == "policy"]
    assert len(Policy.model_validate(YAML(typ="safe").load(block.text)).cases) == 3


def test_the_page_has_every_text_signal() -> None:
    told = {kind for block in EXAMPLES for kind in (YAML(typ="safe").load(block.text).get("signals") or {})}
    assert told >= {kind.collection for kind in KIND_OF_TYPE.values() if kind.scale is None} | {"language"}
