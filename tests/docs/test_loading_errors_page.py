"""docs/loading-errors.md has every reason for which a model does not load, and none that does not exist."""

from __future__ import annotations

import ast
import re

import pytest

from headway.artifacts.foreign_file import FOREIGN_KINDS
from headway.artifacts.hub_errors import _ANSWERS
from tests.cases.broken_files import INPUTS
from tests.cases.test_group_c_loading import REFUSED
from tests.docs.pages import ROOT

SOURCES = [path for part in ("artifacts", "models", "quantization") for path in sorted((ROOT / "src/headway" / part).rglob("*.py"))]
PAGE = set(re.findall(r"`([a-z][a-z0-9_]*)`(?=[^|\n]*\|[^|\n]*\|[^|\n]*\|)", (ROOT / "docs/loading-errors.md").read_text()))
# Reasons of requests and flags, which other pages have.
ELSEWHERE = {"unsupported_dtype", "chat_template_missing", "chat_template_error", "chat_template_untrusted", "chat_template_too_large",
             "chat_template_unreadable", "hf_overrides_invalid", "max_model_len_too_long"}  # fmt: skip


def _given() -> set[str]:
    """Every literal that is given as `reason=`, or stands as `reason` in a class."""
    found: set[str] = set()
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            value = node.value if isinstance(node, ast.keyword) and node.arg == "reason" else None
            if isinstance(node, ast.Assign) and [getattr(target, "id", "") for target in node.targets] == ["reason"]:
                value = node.value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                found.add(value.value)
    return found


def test_every_reason_is_on_the_page() -> None:
    tables = {kind.reason for kind in FOREIGN_KINDS} | {row.reason for row in _ANSWERS}
    cases = {row.reason for row in INPUTS} | {row.reason for row in REFUSED}
    assert (_given() | tables | cases) - ELSEWHERE - PAGE == set()


@pytest.mark.parametrize("reason", sorted(PAGE))
def test_every_reason_of_the_page_is_one(reason: str) -> None:
    assert any(f'"{reason}"' in path.read_text() for path in SOURCES)
