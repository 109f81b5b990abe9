"""The page on the configuration: its tables are those of the code."""

from __future__ import annotations

import re

from headway.cli.sr_config import config_group
from headway.router.config.document.document import Document
from headway.router.config.history.versions import KEPT
from headway.router.config.substitution import substitute
from headway.router.deployments.specification import DEFAULT_DEPLOYMENTS
from tests.docs.pages import ROOT

TEXT = (ROOT / "docs/configuration.md").read_text(encoding="utf-8")


def table(heading: str) -> list[list[str]]:
    """The first cells of the rows below a heading, the words in backquotes."""
    part = TEXT.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return [re.findall(r"`([^`]+)`", line.split("|")[1]) for line in part.splitlines() if line.startswith("| `")]


def test_every_section_is_told() -> None:
    sections = {field.alias or name for name, field in Document.model_fields.items()}
    assert {name for row in table("Sections") for name in row} == sections


def test_every_command_is_told() -> None:
    told = set(re.findall(r"vllm-sr config (\w+)", TEXT))
    assert told == set(config_group.list_commands(None))  # type: ignore[arg-type]


def test_references_become_what_is_told() -> None:
    forms = [form for row in table("References to the environment") for form in row]
    assert [substitute(form, {}).text for form in forms] == ["", "", "default", "default", "$"]
    assert [substitute(form, {"NAME": ""}).text for form in forms] == ["", "", "default", "", "$"]


def test_the_defaults_and_numbers() -> None:
    assert all(f"`{name}`" in TEXT for name in DEFAULT_DEPLOYMENTS)
    assert KEPT == 10
    assert "last ten configurations" in TEXT
