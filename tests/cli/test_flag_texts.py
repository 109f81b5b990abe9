"""Help and documentation are made from the tables."""

from __future__ import annotations

from pathlib import Path

from headway.cli.flag_docs import flag_docs
from headway.cli.flag_help import flag_help
from headway.cli.serve_config import ALL_FLAGS

DOCS = Path(__file__).parents[2] / "docs" / "flags.md"


def test_the_documentation_is_current() -> None:
    message = "run: python -m headway.cli.flag_docs > docs/flags.md"
    assert DOCS.read_text(encoding="utf-8") == flag_docs(), message


def test_the_documentation_names_every_flag() -> None:
    text = flag_docs()
    missing = [f.name for f in ALL_FLAGS if f"--{f.name}" not in text and f"--[no-]{f.name}" not in text]
    assert missing == []


def test_the_overview_is_short_and_points_on() -> None:
    text = flag_help(ALL_FLAGS, "")
    assert "--port N" in text
    assert "--help=all" in text
    assert len(text.splitlines()) < 50


def test_all_a_group_and_a_word() -> None:
    assert flag_help(ALL_FLAGS, "all").count("\n  -") == len(ALL_FLAGS)
    cache = flag_help(ALL_FLAGS, "cache")
    assert "--block-size N" in cache
    assert "--port" not in cache
    assert "--max-model-len" in flag_help(ALL_FLAGS, "max_model")
    assert "--spec-model TEXT" in flag_help(ALL_FLAGS, "--speculative-model")
    assert flag_help(ALL_FLAGS, "zzz") == "No flag mentions 'zzz'. --help=all lists all flags."


def test_help_says_what_does_not_work() -> None:
    assert "Not built yet: expert parallelism (planned: Distributed)." in flag_help(ALL_FLAGS, "enable-expert-parallel")
    assert "Accepted without effect" in flag_help(ALL_FLAGS, "enforce-eager")
    assert "Refused" in flag_help(ALL_FLAGS, "trust-remote-code")
