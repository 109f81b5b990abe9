"""What is said in English is said in Chinese, with the same numbers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from headway.doctor.diagnosis import Finding
from headway.doctor.examine import examine
from headway.doctor.rules.catalogue import rules
from headway.doctor.words import Words
from tests.doctor.judging import Material, fixture, fixture_names, written_cases

_NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)*")
_CHINESE = re.compile("[\u4e00-\u9fff]")


def _said(finding: Finding) -> Iterator[Words]:
    yield finding.title
    yield finding.found.cause
    yield finding.found.verify
    yield from (fix.text for fix in finding.found.fixes)


def _unequal(words: Words) -> str:
    if differ := set(_NUMBER.findall(words.en)) ^ set(_NUMBER.findall(words.zh)):
        return f"numbers {sorted(differ)}"
    return "" if _CHINESE.search(words.zh) else "no Chinese"


def _materials() -> Iterator[tuple[str, Material]]:
    for name in fixture_names():
        yield name, fixture(name).material
    for case in written_cases()[::5]:
        yield case.name, case.material


def test_reports_say_the_same(tmp_path: Path) -> None:
    wrong: list[str] = []
    log, context = tmp_path / "log.txt", tmp_path / "context.yaml"
    for name, material in _materials():
        log.write_bytes(material.log)
        context.write_bytes(material.context or b"")
        report = examine([log], context).report
        said = [(finding.rule.id, words) for finding in report.findings for words in _said(finding)]
        for rule_id, words in said + [("abstained", words) for words in report.abstained]:
            if why := _unequal(words):
                wrong.append(f"{name} {rule_id}: {why}: {words}")
    assert not wrong, "\n".join(wrong[:10])


def test_general_texts_of_rules_speak_both_languages() -> None:
    wrong = []
    for rule in rules():
        for words in (rule.title, rule.symptoms, rule.why, rule.needs, rule.remedy, rule.check):
            if not words.en.strip() or not words.zh.strip():
                wrong.append(f"{rule.id}: {words}")
        wrong += [f"{rule.id}: {words}" for words in (rule.title, rule.why) if not _CHINESE.search(words.zh)]
    assert not wrong, "\n".join(wrong[:20])
