"""The examples of the page on routing: each is read as the part of a configuration that it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from ruamel.yaml import YAML

from headway.cli.sr_test import test_command as command
from headway.router.config.document.document import Document
from headway.router.config.load import load_document
from headway.router.config.rules.projections import projections
from headway.router.config.rules.rule_tree import condition_references
from headway.router.decisions.engine import compile_decisions
from headway.router.selection.trained.artifact import Description, save
from headway.router.signals.kind import Recipe
from headway.router.signals.table import KIND_OF_TYPE
from tests.docs.pages import ROOT, Block, blocks

EXAMPLES = [block for block in blocks(ROOT / "docs/routing.md") if block.language == "yaml" and not block.tag]

CONFIGURATIONS = [block for block in blocks(ROOT / "docs/routing.md") if block.tag == "config"]


@pytest.mark.parametrize("block", CONFIGURATIONS, ids=str)
def test_a_whole_configuration(block: Block, tmp_path: Path) -> None:
    trained = Description("knn", ("large", "small"), 2, None, 2, "large")
    save(tmp_path / "knn", trained, {"vectors": np.eye(2, dtype=np.float32), "values": np.eye(2, dtype=np.float32), "k": np.ones(1, np.float32)})
    load_document(block.text.replace("/srv/selectors", str(tmp_path)), {"THERE_KEY": "k", "ANTHROPIC_KEY": "k"})


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


CONFIG = """\
version: v0.3
providers:
  defaults: {model: small}
  models:
    - {name: small, backend_refs: [{endpoint: "127.0.0.1:8000"}]}
    - {name: large, backend_refs: [{endpoint: "127.0.0.1:8001"}]}
routing:
  modelCards: [{name: small}, {name: large}]
  signals:
    keywords: [{name: code_words, operator: OR, keywords: ["C++"]}]
    role_bindings: [{name: admins, role: admin, subjects: [{kind: Group, name: platform}]}]
  decisions:
    - {name: code, rules: {type: keyword, name: code_words}, modelRefs: [{model: large}]}
    - {name: admin_desk, rules: {type: authz, name: admin}, modelRefs: [{model: large}]}
"""


def test_the_example_of_a_policy(tmp_path: Path) -> None:
    (block,) = [block for block in blocks(ROOT / "docs/routing.md") if block.tag == "policy"]
    (tmp_path / "policy.yaml").write_text(block.text)
    (tmp_path / "config.yaml").write_text(CONFIG)
    found = CliRunner().invoke(command, [str(tmp_path / "policy.yaml")])
    assert found.exit_code == 0, found.output
    assert found.output.splitlines()[-1] == "3 of 3 as expected"


def test_the_page_has_every_text_signal() -> None:
    told = {kind for block in EXAMPLES for kind in (YAML(typ="safe").load(block.text).get("signals") or {})}
    assert told >= {kind.collection for kind in KIND_OF_TYPE.values() if kind.scale is None} | {"language"}
