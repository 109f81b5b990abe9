"""A report as the JSON object that scripts read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from headway.doctor.diagnosis import Finding, Report
from headway.doctor.words import Language

if TYPE_CHECKING:
    from headway.doctor.proof import Proof


def report_json(report: Report, language: Language) -> str:
    return json.dumps(report_object(report, language), ensure_ascii=False, indent=2)


def report_object(report: Report, language: Language) -> dict[str, Any]:
    return {
        "verdict": report.verdict.speak(language),
        "findings": [_finding(finding, language) for finding in report.findings],
        "abstained": [missing.speak(language) for missing in report.abstained],
    }


def _finding(finding: Finding, language: Language) -> dict[str, Any]:
    found = finding.found
    return {
        "rule": finding.rule.id,
        "title": finding.title.speak(language),
        "cause": found.cause.speak(language),
        "confidence": round(found.confidence, 2),
        "evidence": [{"source": quote.source, "line": quote.line, "text": quote.text} for quote in found.evidence],
        "fixes": [{"text": fix.text.speak(language), "command": fix.command} for fix in found.fixes],
        "verify": found.verify.speak(language),
    }


def proof_object(proof: Proof, language: Language) -> dict[str, Any]:
    return {"apply_check": {"verdict": proof.verdict, "said": proof.said.speak(language), "before": dict(proof.before), "after": dict(proof.after)}}
