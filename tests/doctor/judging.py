"""Is a report right? The judge of logs whose cause is known.

An expectation names the rules that are right as the first finding, what must be said, what must not be proposed, what
must be shown, and what must never leak. The judge reads the JSON that a user gets, nothing else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from headway.doctor.examine import examine
from headway.doctor.report.as_json import report_json
from headway.doctor.words import Language

ANSWER_ABOVE = 0.5
CAUSE_CHARS = 800
QUOTE_CHARS = 40
_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


@dataclass(frozen=True, slots=True)
class Expectation:
    """`accept`: rule ids that are right as the first answer; empty = no answer is right; None = not judged.
    `must_mention`: patterns in title, cause or fixes, one of them in the fixes. `must_not`: patterns that no fix holds.
    `evidence`: patterns, each in some quote. `never`: patterns that stand nowhere. `absent`: rules without an answer."""

    accept: tuple[str, ...] | None = None
    must_mention: tuple[str, ...] = ()
    must_not: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()

    @staticmethod
    def of(given: Mapping[str, Any]) -> Expectation:
        accept = given.get("accept")
        lists = {
            name: tuple(map(str, given.get(name) or ()))
            for name in ("must_mention", "must_not", "evidence", "never", "absent")
        }
        return Expectation(accept=None if accept is None else tuple(accept), **lists)


@dataclass(frozen=True, slots=True)
class Material:
    """What a user has at hand: the bytes of a log and, or None, of a context file."""

    log: bytes
    context: bytes | None = None


def report_on(material: Material, folder: Path, language: Language = "en") -> str:
    """The JSON text that `headway doctor log` prints."""
    log, context = folder / "log.txt", folder / "context.yaml"
    log.write_bytes(material.log)
    if material.context is not None:
        context.write_bytes(material.context)
    return report_json(examine([log], context if material.context is not None else None).report, language)


def judged(material: Material, expectation: Expectation, folder: Path) -> str:
    """What is wrong with the report on `material`, "" when nothing is."""
    return fault(report_on(material, folder), expectation, material.log)


def fault(output: str, expectation: Expectation, log: bytes) -> str:
    """The first thing that is wrong with a report, as `kind: detail`; "" when nothing is."""
    report = json.loads(output)
    if wrong := _shape(report):
        return f"shape: {wrong}"
    for pattern in expectation.never:
        if _in(pattern, output):
            return f"leak: {pattern}"
    answers = [finding for finding in report["findings"] if finding["confidence"] > ANSWER_ABOVE]
    for finding in answers:
        if finding["rule"] in expectation.absent:
            return f"false alarm: {finding['rule']} at {finding['confidence']}: {finding['cause']}"
    lines = log.decode("utf-8", "replace").split("\n")
    for finding in report["findings"]:
        if wrong := _misquoted(finding, lines):
            return f"evidence: {finding['rule']} {wrong}"
    if expectation.accept is None:
        return ""
    if not expectation.accept:
        return f"should abstain: got {answers[0]['rule']} at {answers[0]['confidence']}" if answers else ""
    top = report["findings"][0] if report["findings"] else None
    if top is None or not answers:
        return (
            f"no answer: {top['rule']} only at {top['confidence']}"
            if top
            else f"no answer: no finding, {report['abstained']}"
        )
    if top["rule"] not in expectation.accept:
        return f"wrong cause: {top['rule']} instead of {' or '.join(expectation.accept)}"
    return _incomplete(top, expectation)


def _incomplete(top: Mapping[str, Any], expectation: Expectation) -> str:
    if top["confidence"] <= ANSWER_ABOVE:
        return f"no answer: the first finding {top['rule']} has only {top['confidence']}"
    if not top["fixes"] or not top["verify"].strip():
        return "incomplete: no fix, or no check"
    if len(top["title"] + top["cause"]) > CAUSE_CHARS:
        return f"incomplete: title and cause have more than {CAUSE_CHARS} characters"
    fixes = "\n".join(f"{fix['text']}\n{fix['command'] or ''}" for fix in top["fixes"])
    for pattern in expectation.must_not:
        if found := _in(pattern, fixes):
            return f"trap: the fixes hold {found[0]!r}"
    everything = "\n".join((top["title"], top["cause"], fixes))
    for pattern in expectation.must_mention:
        if not _in(pattern, everything):
            return f"incomplete: never mentions {pattern!r} in {everything!r}"
    if expectation.must_mention and not any(_in(pattern, fixes) for pattern in expectation.must_mention):
        return f"incomplete: the fixes mention nothing of {expectation.must_mention}"
    for pattern in expectation.evidence:
        if not any(_in(pattern, item["text"]) for item in top["evidence"]):
            return f"evidence: {pattern!r} is not shown"
    return ""


def _in(pattern: str, text: str) -> re.Match[str] | None:
    return re.search(pattern, text, re.IGNORECASE | re.DOTALL)


def _shape(report: Any) -> str:
    if (
        not isinstance(report, dict)
        or set(report) != {"verdict", "findings", "abstained"}
        or not report["verdict"].strip()
    ):
        return "a report has a verdict, findings, and what was not judged"
    if not all(isinstance(text, str) and text for text in report["abstained"]):
        return "what was not judged must be sentences"
    for finding in report["findings"]:
        if wrong := _finding_shape(finding):
            return f"{finding.get('rule')}: {wrong}"
    return ""


def _finding_shape(finding: Mapping[str, Any]) -> str:
    if not all(
        isinstance(finding.get(name), str) and finding[name].strip() for name in ("rule", "title", "cause", "verify")
    ):
        return "rule, title, cause and verify must be sentences"
    if isinstance(finding["confidence"], bool) or not 0 <= finding["confidence"] <= 1:
        return f"confidence {finding['confidence']}"
    for item in finding["evidence"]:
        if not isinstance(item["source"], str) or not isinstance(item["text"], str) or not item["text"].strip():
            return f"evidence {item}"
        if (item["line"] is None) != item["source"].startswith("context:"):
            return f"evidence of a log has a line, of a context none: {item}"
    for fix in finding["fixes"]:
        if (
            not isinstance(fix["text"], str)
            or not fix["text"].strip()
            or not isinstance(fix["command"], (str, type(None)))
        ):
            return f"fix {fix}"
    return ""


def _misquoted(finding: Mapping[str, Any], lines: Sequence[str]) -> str:
    for item in finding["evidence"]:
        number = item["line"]
        if number is None:
            continue
        if not 1 <= number <= len(lines):
            return f"quotes line {number} of {len(lines)}"
        quote = _squeezed(item["text"]).strip("…. ")[:QUOTE_CHARS]
        if quote not in _squeezed(lines[number - 1]):
            return f"line {number} does not hold {quote!r}"
    return ""


def _squeezed(text: str) -> str:
    return " ".join(_ESCAPES.sub("", text).split())


@dataclass(frozen=True, slots=True)
class Known:
    """A case whose cause is known."""

    name: str
    material: Material
    expectation: Expectation


FIXTURES = Path(__file__).parent / "fixtures"
CASES = Path(__file__).parent / "cases"


def fixture(name: str) -> Known:
    folder = FIXTURES / name
    context = folder / "context.yaml"
    expectation = Expectation.of(yaml.safe_load((folder / "expect.yaml").read_text("utf-8")))
    material = Material((folder / "log.txt").read_bytes(), context.read_bytes() if context.exists() else None)
    return Known(name, material, expectation)


def fixture_names() -> list[str]:
    return sorted(path.parent.name for path in FIXTURES.glob("*/expect.yaml"))


_CASE_KEYS = {"name", "log", "context", "accept", "must_mention", "must_not", "evidence", "never", "absent"}


def case_files() -> list[Path]:
    return sorted(CASES.glob("*/*.yaml"))


def written_cases() -> list[Known]:
    """The cases of all files that have the agreed form."""
    known: list[Known] = []
    for path in case_files():
        with suppress(ValueError, yaml.YAMLError):
            known += cases_of(path)
    return known


def cases_of(path: Path) -> list[Known]:
    """The cases of `cases/<category>/<file>.yaml`, a list. A case `<ID>-no...` is a near miss: the rule has no answer.

    Raises ValueError or YAMLError on another form.
    """
    listed = yaml.safe_load(path.read_text("utf-8"))
    if not isinstance(listed, list) or not all(isinstance(case, dict) for case in listed):
        raise ValueError(f"{path.name} must be a list of cases")
    return [_case(path.parent.name, case) for case in listed]


def _case(category: str, case: Mapping[str, Any]) -> Known:
    name, context = str(case.get("name")), case.get("context")
    if extra := set(case) - _CASE_KEYS:
        raise ValueError(f"{name}: unknown keys {sorted(extra)}")
    form = re.fullmatch(r"([A-Z]\d+)-(yes|no)(?:-[\w.-]+)?", name)
    if form is None:
        raise ValueError(f"{name}: a name is <ID>-yes... or <ID>-no...")
    expectation = Expectation.of(case)
    if form[2] == "no" and not (expectation.accept and form[1] in expectation.accept):
        expectation = replace(expectation, absent=(*expectation.absent, form[1]))
    packed = None if context is None else yaml.safe_dump(context, allow_unicode=True, sort_keys=False).encode()
    return Known(f"{category}/{name}", Material(str(case.get("log") or "").encode(), packed), expectation)
