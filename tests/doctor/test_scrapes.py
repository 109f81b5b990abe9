"""Rules on metrics alone: scrapes of a real vLLM in known states, without a log or a command."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest

from headway.doctor.case import Case
from headway.doctor.collect.metrics import parse_metrics
from headway.doctor.diagnosis import Report, diagnose
from headway.doctor.evidence.context import Context
from headway.doctor.evidence.log.log import Log
from headway.doctor.rules.catalogue import rules

SCRAPES = Path(__file__).parent / "scrapes"
# state -> seconds between its two scrapes, the rule that names it ("" = nothing is wrong), what the answer has to say
STATES = {
    "idle": (6, "", ()),
    "healthy": (6, "", ()),
    "prefix-warm": (6, "", ()),
    "prefix-cold": (6, "", ()),  # which prompts were sent is not in the metrics
    "long-prompts": (12, "F2", ("1 of 13 prompts", "more than 2,000 tokens", "--long-prefill-token-threshold")),
    "capped": (6, "T1", ("2 sequences run", "14 requests wait", "--max-num-seqs 4")),
    "full": (6, "T2", ("4 sequences running and 12 waiting", "1,280 tokens", "284 tokens")),
    "preempting": (22, "T3", ("3 preemptions", "--kv-cache-dtype fp8")),
}


def sample(name: str, t: float = 0.0) -> dict[str, Any]:
    return {"t": t, **parse_metrics((SCRAPES / f"{name}.prom").read_text())}


def report(*samples: Mapping[str, Any], **more: Any) -> Report:
    return diagnose(Case(Log(), Context({"metrics": list(samples), **more})), rules())


def of_state(state: str, **more: Any) -> Report:
    return report(sample(f"{state}-1"), sample(f"{state}-2", STATES[state][0]), **more)


def answers(found: Report) -> list[str]:
    return [finding.rule.id for finding in found.findings if finding.is_answer]


@pytest.mark.parametrize("state", STATES)
def test_each_state_has_its_name(state: str) -> None:
    _, rule, said = STATES[state]
    found = of_state(state)
    assert answers(found)[:1] == ([rule] if rule else [])
    top = found.findings[0].found if rule else None
    text = " ".join((top.cause.en, *(f"{fix.text.en} {fix.command}" for fix in top.fixes))) if top else ""
    assert [words for words in said if words not in text] == []


@pytest.mark.parametrize("state", [name for name, (_, rule, _) in STATES.items() if not rule])
@pytest.mark.parametrize("index", [1, 2])
def test_one_scrape_of_a_healthy_server_gives_no_answer(state: str, index: int) -> None:
    assert answers(report(sample(f"{state}-{index}"))) == []


def test_one_scrape_does_not_say_that_a_counter_grows() -> None:
    assert "T3" not in answers(report(sample("preempting-2")))
    assert "F2" not in answers(report(sample("long-prompts-2")))


def test_a_restarted_server_is_no_growth() -> None:
    """A counter that fell starts again at zero: it grew by its new value."""
    assert "T3" not in answers(report(sample("preempting-2"), sample("healthy-1", 30)))


def test_the_cap_that_the_command_names() -> None:
    found = of_state("capped", command="vllm serve m --max-num-seqs 2")
    assert answers(found) == ["T1"]
    assert found.findings[0].found.confidence >= 0.75


def test_a_cold_prefix_cache_beside_two_of_its_requests() -> None:
    """The metrics say that nothing hits, the requests why: they differ at their start."""
    same = " ".join(Random(7).choice(("river", "stone", "window", "garden", "market")) for _ in range(450))
    requests = [{"id": f"sample {k}", "prompt": f"[request {k} at 17960285{k}.123] {same}"} for k in (11, 12)]
    found = of_state("prefix-cold", requests=requests)
    assert answers(found)[0] == "F4"
    assert "hits 0.0%" in found.findings[0].found.cause.en


def test_the_same_requests_beside_a_warm_cache() -> None:
    same = " ".join(Random(7).choice(("river", "stone", "window", "garden", "market")) for _ in range(450))
    found = of_state("prefix-warm", requests=[{"id": str(k), "prompt": f"{same} {k}"} for k in (11, 12)])
    assert answers(found) == []


def test_old_names_and_a_cap_from_the_command() -> None:
    found = report(sample("old-names"), command="vllm serve mistralai/Mistral-7B-Instruct-v0.3 --max-num-seqs 64")
    assert answers(found) == ["T1"]
    assert found.findings[0].found.fixes[0].command == "--max-num-seqs 128"
    assert "1504 tokens/s" in found.findings[0].found.cause.en
