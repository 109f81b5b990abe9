"""docs/router-metrics.md is the table of families, and each family is one that the router fills, with the labels that it has."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from headway.router.metrics.absent import ABSENT
from headway.router.metrics.families import FAMILIES
from headway.router.metrics.page import metrics_markdown
from tests.docs.pages import PAGES, ROOT

KNOWN = {family.name: family for family in FAMILIES}
KINDS = {"count": "counter", "set": "gauge", "add": "gauge", "observe": "histogram"}
VALUES = {"count": 1, "set": 2, "add": 2, "observe": 2}  # the name, and the number where it is one of the first two


class Fill(NamedTuple):
    place: str
    method: str
    name: str
    labels: int | None


def fills() -> Iterator[Fill]:
    """Calls that move a family, with the number of labels where that can be told."""
    for path in (ROOT / "src/headway/router").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in KINDS and node.args):
                continue
            name = node.args[0]
            if isinstance(name, ast.Constant) and isinstance(name.value, str) and name.value.split("_")[0] in ("llm", "vsr", "sr", "rag", "headway"):
                starred = any(isinstance(each, ast.Starred) for each in node.args)
                yield Fill(f"{path.name}:{node.lineno}", node.func.attr, name.value, None if starred else len(node.args) - VALUES[node.func.attr])


FILLS = list(fills())
WRITTEN = "\n".join(path.read_text() for path in (ROOT / "src/headway/router").rglob("*.py") if path.name != "families.py")


def test_the_page_is_printed_from_the_table() -> None:
    assert (ROOT / "docs/router-metrics.md").read_text() == metrics_markdown()


@pytest.mark.parametrize("name", KNOWN)
def test_every_family_is_filled(name: str) -> None:
    assert f'"{name}"' in WRITTEN


def test_what_is_told_to_be_missing_is_missing() -> None:
    beginnings = tuple(each.names.removesuffix("*") for each in ABSENT)
    assert not [name for name in KNOWN if name.startswith(beginnings)]


@pytest.mark.parametrize("fill", FILLS, ids=str)
def test_what_is_counted_is_in_the_table(fill: Fill) -> None:
    family = KNOWN[fill.name]
    assert KINDS[fill.method] == family.kind
    assert fill.labels in (None, len(family.labels))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_names_in_the_documentation_exist(page: Path) -> None:
    told = set(re.findall(r"`((?:llm|vsr|rag)_[a-z0-9_]+)[`{]", page.read_text()))
    exposed = {f"{name}{end}" for name in KNOWN for end in ("", "_total", "_bucket", "_sum", "_count")}
    assert told - exposed - {"llm_request"} == set()  # that one is a span of the engine
