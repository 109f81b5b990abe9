"""The page on the public address: its examples load, and its reasons have the statuses that it tells."""

from __future__ import annotations

import re

import pytest
from ruamel.yaml import YAML

from headway.router.config.document.document import Document
from headway.router.listener.app import INFERENCE
from headway.router.listener.front import compile_front
from headway.wire.errors import SHAPES
from tests.docs.pages import ROOT, Block, blocks

PAGE = ROOT / "docs/public-api.md"
EXAMPLES = [block for block in blocks(PAGE) if block.language == "yaml"]


@pytest.mark.parametrize("block", EXAMPLES, ids=str)
def test_an_example_is_a_configuration(block: Block) -> None:
    text = block.text.replace("${ROUTER_KEY:-change-me}", "change-me")
    front = compile_front(Document.model_validate({"version": "v0.3", **YAML(typ="safe").load(text)}), {"ALICE_KEY": "k"})
    assert front.listeners


def test_reasons_have_the_statuses_of_the_table() -> None:
    rows = re.findall(r"^\| ([\d, ]+) \| (`.*`) \|$", PAGE.read_text(), re.MULTILINE)
    assert len(rows) == 8
    for statuses, reasons in rows:
        for reason in re.findall(r"`(\w+)`", reasons):
            assert str(SHAPES[reason].status) in statuses, reason


def test_the_page_names_every_route() -> None:
    assert [path for path in INFERENCE if f"`POST {path}`" not in PAGE.read_text()] == []
