"""Every rule: a case in which it is the cause, and a near miss in which it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from headway.doctor.rules.catalogue import rules
from tests.doctor.judging import Known, case_files, cases_of, judged, written_cases

# How many rules the catalogue has per letter; they are numbered from 1.
CATALOGUE = {"O": 20, "T": 20, "F": 15, "L": 20, "N": 20, "Q": 20, "D": 21, "R": 33}
IDS = [f"{letter}{number}" for letter, count in CATALOGUE.items() for number in range(1, count + 1)]
CASES = written_cases()


def _about(case: Known, rule_id: str, kind: str) -> bool:
    return case.name.split("/")[1].split("-")[:2] == [rule_id, kind]


@pytest.mark.parametrize("path", case_files(), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_file_has_the_agreed_form(path: Path) -> None:
    names = [case.name for case in cases_of(path)]
    assert names
    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_case(case: Known, tmp_path: Path) -> None:
    assert judged(case.material, case.expectation, tmp_path) == ""


@pytest.mark.parametrize("rule_id", IDS)
def test_rule_exists_and_is_proven_both_ways(rule_id: str) -> None:
    assert rule_id in {rule.id for rule in rules()}, "the rule does not exist"
    positive = [case.expectation for case in CASES if _about(case, rule_id, "yes")]
    negative = [case.expectation for case in CASES if _about(case, rule_id, "no")]
    assert any(rule_id in (wanted.accept or ()) for wanted in positive), "no case in which it is the cause"
    assert any(rule_id in wanted.absent or wanted.accept == () for wanted in negative), (
        "no near miss in which it is not the cause"
    )


def test_nothing_beside_the_catalogue() -> None:
    assert {rule.id for rule in rules()} <= set(IDS)
