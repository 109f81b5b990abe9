"""Logs that a real vLLM printed in known situations: the right rule first, and nothing for what went well."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from headway.doctor.examine import Examined, examine

LOGS = Path(__file__).parent / "vllm_logs"
# log -> the rule that names its cause ("" = nothing is wrong), what its answer has to say
KNOWN = {
    "served-and-stopped": ("", ()),
    "stopped-while-starting": ("", ()),
    "capped": ("T1", ("--max-num-seqs 4", "allows 2")),
    "cache-of-few-blocks": ("T2", ("1,280 tokens", "--num-gpu-blocks-override 10")),
    "context-too-long": ("L16", ("16384", "--max-model-len 8192")),
    "cache-too-small": ("O2", ("--max-model-len 46464", "VLLM_CPU_KVCACHE_SPACE=3", "2.81 GiB")),
    "cache-beyond-memory": ("O4", ("200 GiB was asked for", "VLLM_CPU_KVCACHE_SPACE=12")),
    "wrong-quantization": ("Q5", ("drop the flag",)),
    "missing-model": ("L1", ("/models/no-such-model",)),
    "unknown-name-offline": ("L1", ("no-such-owner/no-such-model",)),
    "heads-do-not-divide": ("D1", ("9 attention heads",)),
    "port-taken": ("N18", ("8101", "--port 8102")),
    "truncated-weights": ("L7", ("truncated", "download these files again")),
    "no-tokenizer": ("L6", ("tokenizer",)),
}


def examined(name: str) -> Examined:
    return examine([LOGS / f"{name}.log"], None)


def test_every_log_is_known() -> None:
    assert {path.stem for path in LOGS.glob("*.log")} == set(KNOWN)


@pytest.mark.parametrize("name", KNOWN)
def test_the_cause_of_each(name: str) -> None:
    rule, said = KNOWN[name]
    report = examined(name).report
    assert [finding.rule.id for finding in report.findings if finding.is_answer][:1] == ([rule] if rule else [])
    if rule:
        found = report.findings[0].found
        text = " ".join((found.cause.en, *(f"{fix.text.en} {fix.command}" for fix in found.fixes)))
        assert [words for words in said if words not in text] == []


def test_a_server_that_was_stopped_is_healthy() -> None:
    """`EngineDeadError` behind the signal is how it ends."""
    found = examined("served-and-stopped")
    assert found.report.abstained == ()
    assert "became ready" in found.report.verdict.en


def test_a_start_that_was_stopped_asks_for_who_did_it() -> None:
    (missing,) = examined("stopped-while-starting").report.abstained
    assert "SIGTERM" in missing.en
    assert "SIGTERM" in missing.zh


def test_no_log_says_that_its_machine_has_a_gpu() -> None:
    assert {examined(name).case.device.kind for name in KNOWN} == {"cpu"}


def test_logs_hold_no_paths_of_a_machine() -> None:
    for path in LOGS.glob("*.log"):
        assert re.findall(r"/(?:root|work)/|/tmp/(?!vllm_dist_)", path.read_text()) == []
