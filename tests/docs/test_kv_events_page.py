"""The page on KV events: its values are read as they stand, and its tables say what the code has."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from typing import Any

from headway.engine.kv_events.settings import KVEventsSettings, read_kv_events
from headway.router.config.document.prefix_routing import PrefixRoutingSettings
from headway.router.config.load import load_document
from tests.docs.pages import ROOT, blocks

PAGE = ROOT / "docs/kv-events.md"


def table(first: str) -> dict[str, str]:
    """The rows of the table whose head begins with `first`: name -> default."""
    part = PAGE.read_text().split(f"| {first} | default |")[1].split("\n\n")[0]
    return dict(re.findall(r"^\| `(\w+)` \| ([^|]*) \|", part, re.MULTILINE))


def shown(value: Any) -> str:
    return {None: "none", False: "`false`", "": "empty"}.get(value, f"`{value}`" if isinstance(value, str) and "://" in value else str(value))


def test_the_value_of_the_flag_is_read() -> None:
    (block,) = [block for block in blocks(PAGE) if block.language == "json"]
    assert read_kv_events(json.loads(block.text)).publishes


def test_the_configuration_is_read_without_a_word() -> None:
    (block,) = [block for block in blocks(PAGE) if block.tag == "config"]
    assert [str(each) for each in load_document(block.text, {}).diagnostics] == []


def test_the_tables_have_every_setting_with_its_default() -> None:
    engine = table("key")
    assert set(engine) == {field.name for field in fields(KVEventsSettings)}
    assert {name: engine[name] for name in engine if name not in ("publisher", "bind")} == {
        field.name: shown(field.default) for field in fields(KVEventsSettings) if field.name not in ("publisher", "bind")
    }
    assert table("setting of `prefix_routing`") == {name: str(field.default) for name, field in PrefixRoutingSettings.model_fields.items()}
