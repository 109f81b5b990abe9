"""Documentation holds together without running anything: tags, targets, links."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import COMMANDS, PAGES, ROOT, TAGS, blocks

TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
ALL = [block for page in PAGES for block in blocks(page)]


def test_no_command_escapes_the_tests() -> None:
    assert [str(block) for block in ALL if block.language in COMMANDS and block.tag not in TAGS] == []
    fences = sum(page.read_text().count("\n```") + page.read_text().startswith("```") for page in PAGES)
    assert fences == 2 * len(ALL), "a fence that the pattern of pages.py does not see"


def test_make_targets_exist() -> None:
    lines = [line.split("#")[0].split() for block in ALL if block.tag == "make" for line in block.text.splitlines()]
    assert all(words[0] == "make" for words in lines)
    assert {word for words in lines for word in words[1:]} <= TARGETS
    assert {"install", "up", "test", "test-long", "lint", "bench"} <= TARGETS


def test_the_readme_begins_with_the_two_commands_and_a_request() -> None:
    first, second = [block for block in ALL if block.page.name == "README.md"][:2]
    assert [line.split("#")[0].strip() for line in first.text.splitlines()] == ["make up", "make test"]
    assert second.text.startswith("curl ")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text())
    assert [t for t in targets if not t.startswith("http") and not (page.parent / t).exists()] == []


def test_bench_scripts_accept_their_options() -> None:
    for block in ALL:
        for line in block.text.splitlines() if block.tag == "bench" else ():
            python, *words = line.split()
            assert python == "python"
            done = subprocess.run([sys.executable, *words, "--help"], cwd=ROOT, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            assert "--peer" in done.stdout


def test_nothing_tells_about_one_machine() -> None:
    for page in [*PAGES, ROOT / "CHANGELOG.md", ROOT / "Makefile", ROOT / ".ci" / "run"]:
        assert re.findall(r"/(?:home|root|work|tmp)/\S+", page.read_text()) == [], page.name
