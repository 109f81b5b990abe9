"""The page on the public address: its examples load, and its reasons have the statuses that it tells."""

from __future__ import annotations

import ast
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


def _rows() -> list[tuple[str, str]]:
    return re.findall(r"^\| ([\d, ]+) \| (`.*) \|$", PAGE.read_text(), re.MULTILINE)


def test_reasons_have_the_statuses_of_the_table() -> None:
    rows = _rows()
    assert len(rows) == 9
    for statuses, reasons in rows:
        for reason in re.findall(r"`(\w+)`", reasons):
            assert str(SHAPES[reason].status) in statuses, reason


# Reasons that no client of the public address meets: they end the start, refuse a configuration, a call of the management address or a command,
# or say inside the router why a model or a backend was not asked.
ELSEWHERE = {
    "address_invalid", "port_in_use", "socket_invalid", "tls_invalid", "key_missing", "key_repeated", "network_invalid", "header_protected", "endpoint_invalid",
    "variable_missing", "binding_mismatch", "mapping_invalid", "selector_unusable", "projection_cycle", "duration_invalid", "runtime_folder_invalid",
    "config_not_a_mapping", "config_rejected", "config_stale", "config_superseded", "config_unreadable", "config_unwritable", "config_version_unknown",
    "restart_required", "schema_unknown", "yaml_invalid", "policy_unreadable", "rows_invalid", "embedding_failed", "startup_timeout", "process_ended",
    "forbidden", "idempotency_conflict", "ingestion_failed",
    "already_up", "cluster_unreachable", "kv_events_format", "ray_failed", "ray_missing",
    "deployment_not_ready", "unknown_deployment", "runtime_unreachable", "runtime_answer_too_large",
}  # fmt: skip


def _raised() -> set[str]:
    """Every literal that is given as `reason=` to an error, or stands as `reason` in a class of errors."""
    found: set[str] = set()
    for part in ("router", "http", "compose"):
        for path in (ROOT / "src/headway" / part).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Error"):
                    found |= {each.value.value for each in node.keywords if each.arg == "reason" and isinstance(each.value, ast.Constant)}
                if isinstance(node, ast.ClassDef) and node.name.endswith(("Error", "Rejected")):
                    found |= {
                        each.value.value for each in node.body
                        if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == "reason" and isinstance(each.value, ast.Constant)
                    }  # fmt: skip
    return found


def test_every_reason_is_on_the_page_or_never_gets_there() -> None:
    told = {reason for _, reasons in _rows() for reason in re.findall(r"`(\w+)`", reasons)}
    raised = _raised()
    assert raised - ELSEWHERE - told == set()
    assert ELSEWHERE - raised == set()
    assert told & ELSEWHERE == set()
    assert ELSEWHERE & set(SHAPES) == set()


def test_the_page_names_every_route() -> None:
    assert [path for path in INFERENCE if f"`POST {path}`" not in PAGE.read_text()] == []
