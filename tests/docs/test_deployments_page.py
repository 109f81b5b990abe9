"""The page on deployments: its examples are configurations, its tables are those of the code."""

from __future__ import annotations

import re

import pytest
from ruamel.yaml import YAML

from headway.router.config.document.document import Document
from headway.router.deployments.outcome import CANCELLED, REASONS
from headway.router.deployments.runtime_environment import runtime_environment
from headway.router.deployments.tempo import USUAL
from headway.router.native.endpoint import MOST_ANSWER_BYTES, MOST_BODY_BYTES
from tests.docs.pages import ROOT, Block, blocks

PAGE = ROOT / "docs/deployments.md"
TEXT = PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("block", blocks(PAGE), ids=str)
def test_an_example_is_part_of_a_configuration(block: Block) -> None:
    given = YAML(typ="safe").load(block.text)
    inside = given if "listeners" in given else {"global": {"model_catalog": given}}
    Document.model_validate({"version": "v0.3", **inside})


def test_every_reason_is_told() -> None:
    table = TEXT.partition("## Reasons without an answer")[2].partition("##")[0]
    told = {word for line in table.splitlines() if line.startswith("| `") for word in re.findall(r"`(\w+)`", line.split("|")[1])}
    assert told == set(REASONS) - {CANCELLED}


def test_every_variable_is_told_with_its_default() -> None:
    table = TEXT.partition("## Variables")[2].partition("\n## ")[0]
    rows = dict(re.findall(r"^\| `(VLLM_SRUN_\w+)` \| `?([^|`]+)`?", table, re.MULTILINE))
    assert set(rows) == set(re.findall(r'"(VLLM_SRUN_\w+)"', (ROOT / "src/headway/router/deployments/runtime_environment.py").read_text()))
    defaults = runtime_environment({})
    assert rows["VLLM_SRUN_READY_TIMEOUT"] == "10m"
    assert defaults.ready_timeout == 600
    assert rows["VLLM_SRUN_RESULT_CACHE"] == str(defaults.result_cache)


def test_the_numbers_of_the_page_are_those_of_the_code() -> None:
    assert (USUAL.first_backoff, USUAL.longest_backoff, USUAL.good_run, USUAL.grace) == (1, 60, 120, 10)
    assert (USUAL.failed_loads, USUAL.quick_exits, USUAL.quick_window, USUAL.first_pause, USUAL.longest_pause) == (3, 3, 30, 0.1, 3.2)
    assert (MOST_BODY_BYTES, MOST_ANSWER_BYTES) == (48 << 20, 4 << 20)
