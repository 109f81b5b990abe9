"""The page on prefill and decoding in different engines: its values are read as they stand, and its table says what the code has."""

from __future__ import annotations

import json
import re

from headway.engine.config import EngineConfig
from headway.engine.kv_transfer.params import transfer_params
from headway.engine.kv_transfer.settings import EXTRA_FIELDS, FIELDS, WITHOUT_EFFECT, TransferSettings
from headway.router.config.load import load_document
from headway.telemetry.metric_families import FAMILIES
from tests.docs.pages import ROOT, blocks

PAGE = ROOT / "docs/disaggregation.md"


def test_the_values_of_the_flag_are_read() -> None:
    given = [json.loads(text) for text in re.findall(r"--kv-transfer-config '(.*)'", PAGE.read_text())]
    settings = [EngineConfig("m", kv_transfer_config=each).kv_transfer for each in given]
    assert [each.role for each in settings if each is not None] == ["kv_producer", "kv_consumer"]


def test_the_first_step_is_understood() -> None:
    bodies = [json.loads(text) for text in re.findall(r"-d '(.*)'", PAGE.read_text())]
    first = transfer_params(bodies[0]["kv_transfer_params"])
    assert first is not None
    assert first.keeps
    assert bodies[1]["kv_transfer_params"]["do_remote_prefill"] is True


def test_the_configuration_is_read_without_a_word() -> None:
    (block,) = [block for block in blocks(PAGE) if block.tag == "config"]
    assert [str(each) for each in load_document(block.text, {}).diagnostics] == []


def test_every_field_is_told_with_its_default() -> None:
    text = PAGE.read_text()
    rows = dict(re.findall(r"^\| (`kv_\w+`(?:, `kv_\w+`)?|`engine_id`) \| (.*) \|$", text, re.MULTILINE))
    told = {name for names in rows for name in re.findall(r"\w+", names)}
    assert told | {"kv_buffer_device", *WITHOUT_EFFECT} == set(FIELDS)
    plain = TransferSettings("kv_both")
    assert rows["`kv_ip`, `kv_port`"].startswith(f"`{plain.host}`, {plain.port} |")
    assert rows["`kv_buffer_size`"].startswith("1e9 |")
    assert plain.buffer_bytes == 1e9
    extra = rows["`kv_connector_extra_config`"]
    assert set(re.findall(r"`(\w+)`", extra)) == set(EXTRA_FIELDS)
    assert [f"({plain.lease_seconds:g} s" in extra, f"({plain.most_leases})" in extra, f"({plain.pull_seconds:g} s" in extra] == [True, True, True]


def test_the_metrics_exist() -> None:
    known = {family.name for family in FAMILIES}
    told = re.findall(r"`((?:headway|vllm):\w+)", PAGE.read_text())
    assert len(told) >= 7
    assert {name.removesuffix("_total") for name in told} <= known
