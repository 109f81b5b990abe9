"""The page on adapters tells every reason that they can be refused for, with its status."""

from __future__ import annotations

import ast
import re

from headway.errors import AdapterError, RequestError
from headway.wire.errors import shape_of
from tests.docs.pages import ROOT

PAGE = (ROOT / "docs/lora.md").read_text()
FOLDERS = ("models/lora", "engine/lora", "server/lora")
AT_WORK = {"adapter_changed", "truncated"}  # of a request that runs, and of a file that changes while it is read


def _raised() -> set[str]:
    found: set[str] = set()
    for folder in FOLDERS:
        for path in (ROOT / "src/headway" / folder).glob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call):
                    found |= {str(each.value.value) for each in node.keywords if each.arg == "reason" and isinstance(each.value, ast.Constant)}
    return found


def test_reasons_and_statuses() -> None:
    told = {reason: int(status) for status, row in re.findall(r"^\| (\d+) \| (.*) \|$", PAGE, re.MULTILINE) for reason in re.findall(r"`(\w+)`", row)}
    assert told.keys() - {"model_not_found"} == _raised() - AT_WORK
    for reason, status in told.items():
        kind = AdapterError if reason.startswith("adapter") else RequestError
        assert shape_of(kind("x", reason=reason)).status == status, reason
