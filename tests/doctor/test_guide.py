"""The troubleshooting guide in both languages is made from the rules."""

from __future__ import annotations

import re

import pytest

from headway.doctor.guide import guide
from headway.doctor.rules.catalogue import rules
from headway.doctor.words import LANGUAGES, Language
from tests.docs.pages import ROOT

_PAGES = {"en": "docs/doctor-guide.md", "zh": "docs/doctor-guide.zh.md"}
_HAN = re.compile(r"[\u4e00-\u9fff]")


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_page_is_that_of_the_rules(language: Language) -> None:
    assert (ROOT / _PAGES[language]).read_text(encoding="utf-8") == guide(language), "run: make docs"


def test_every_rule_speaks_both_languages() -> None:
    """Chinese text has Chinese in it (patterns in backticks may stand alone), English has none outside of quoted text."""
    for rule in rules():
        for field in ("title", "why", "remedy"):
            words = getattr(rule, field)
            assert words.en.strip(), f"{rule.id} {field}"
            assert _HAN.search(words.zh), f"{rule.id} {field}: {words.zh}"
            assert not _HAN.search(words.en), f"{rule.id} {field}: {words.en}"
