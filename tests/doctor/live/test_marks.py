"""A rule that is marked live is caused here, and one that is caused here is marked."""

from __future__ import annotations

import re
from pathlib import Path

from headway.doctor.rules.catalogue import rules

_HERE = Path(__file__).parent
_EXPECTED = re.compile(r'\["rule"\] (?:== (?:own\["rule"\] == )?"(?P<one>[A-Z]\d+)"|in \((?P<several>[^)]*)\))')


def test_the_marks_are_those_of_the_faults() -> None:
    """Where several rules are right for a fault, at least one of them is marked."""
    marked = {rule.id for rule in rules() if rule.proof == "live"}
    faults = [set(re.findall(r"[A-Z]\d+", found[0])) for file in _HERE.glob("test_*.py") for found in _EXPECTED.finditer(file.read_text())]
    assert len(faults) > 15
    for right in faults:
        assert right & marked, f"{right} is caused here and not marked"
    caused = set().union(*faults)
    assert marked <= caused, f"{marked - caused} is marked and not caused here"
