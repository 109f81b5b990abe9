"""`vllm-sr spend`: what the ledger beside a configuration holds."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest
from click.testing import CliRunner

from headway.cli.sr_place import state_folder
from headway.cli.sr_spend import spend_command
from headway.errors import HeadwayError
from headway.router.listener.usage import Usage
from headway.router.spend.ledger import FILE_NAME, SpendLedger


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("VLLM_SR_STATE_ROOT_DIR", raising=False)
    path = tmp_path / "config.yaml"
    days = iter([date(2026, 10, 31), date(2026, 11, 1), date(2026, 11, 30)])
    ledger = SpendLedger(state_folder(path), lambda: next(days))
    ledger.add("alice", "m", Usage(10, 5), 1.0, "USD")
    ledger.add("alice", "m", Usage(20, 5, estimated=True), 2.0, "USD")
    ledger.add("", "local", Usage(1, 1), 0.0, "")
    ledger.close()
    return path


def said(config: Path, *options: str) -> str:
    result = CliRunner().invoke(spend_command, ["--config", str(config), *options], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_rows_by_key_and_model_within_days(config: Path) -> None:
    rows = json.loads(said(config, "--since", "2026-11-01", "--json"))
    assert rows == [
        {"key": "alice", "model": "m", "currency": "USD", "requests": 1, "estimated": 1, "prompt_tokens": 20, "completion_tokens": 5, "cost": 2.0},
        {"key": "", "model": "local", "currency": "", "requests": 1, "estimated": 0, "prompt_tokens": 1, "completion_tokens": 1, "cost": 0.0},
    ]


def test_sums_of_one_key_over_all_time(config: Path) -> None:
    (row,) = json.loads(said(config, "--per", "total", "--key", "alice", "--by", "key", "--json"))
    assert (row["cost"], row["requests"]) == (3.0, 2)
    assert "model" not in row


def test_the_table_is_for_people(config: Path) -> None:
    text = said(config, "--per", "total", "--by", "day")
    assert "2026-10-31" in text
    assert "1.000000 USD" in text
    assert "Nothing was spent" in said(config, "--until", "2020-01-01", "--since", "2019-01-01")


def test_a_file_that_is_no_ledger_is_named(config: Path) -> None:
    (state_folder(config) / FILE_NAME).write_bytes(b"no database" * 100)
    with pytest.raises(HeadwayError) as caught:
        said(config)
    assert caught.value.reason == "ledger_invalid"
