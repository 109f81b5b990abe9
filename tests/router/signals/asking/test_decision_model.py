"""Every built-in question, and one of one's own of each type, put to a decision model in a worker that the router runs.

Its weights are random: what it says is worth nothing, that it says something shows that it can be asked.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from headway.router.deployments.deployments import RuntimeDeployments
from headway.router.deployments.runtime_environment import RuntimeEnvironment
from headway.router.deployments.runtimes import Runtimes
from headway.router.metrics.registry import RouterMetrics
from headway.router.observation import Observations
from headway.router.request.deadline import Deadline
from headway.router.request.view import RequestView
from headway.router.signals.extraction import compile_extraction
from headway.router.signals.kind import Recipe
from headway.router.signals.table import KIND_OF_TYPE
from headway.router.truth import Truth
from headway.runtime.plugins import PluginSet
from tests.router.routed import recipe

pytestmark = pytest.mark.timeout(300)
OPTIONS = [{"key": "billing", "description": "invoices"}, {"key": "delivery", "description": "parcels"}]
OWN = [
    {"name": "noul", "question": {"type": "noul", "instructions": "Is it urgent?"}},
    {"name": "choice", "question": {"type": "choice", "instructions": "What is it about?", "choices": OPTIONS}},
    {"name": "score", "question": {"type": "score", "instructions": "How angry?", "levels": ["calm", "angry"]}, "predicate": {"gte": 0.5}},
    {"name": "set", "question": {"type": "set", "instructions": "What does it mention?", "labels": OPTIONS}, "coverage": "full"},
    {"name": "span", "question": {"type": "span", "instructions": "Where is it mentioned?", "labels": OPTIONS}},
]
SIGNALS: dict[str, list[dict[str, Any]]] = {
    "domain": [{"name": "law", "description": "rights"}], "fact_check": [{"name": "needs_fact_check"}], "user_feedback": [{"name": "satisfied"}],
    "reask": [{"name": "again"}], "preference": [{"name": "code", "description": "programs"}], "complexity": [{"name": "work"}],
    "modality": [{"name": "AR"}], "jailbreak": [{"name": "attack", "threshold": 0.5}], "pii": [{"name": "personal"}],
    "safety": [{"name": "unsafe", "threshold": 0.01, "hazard": {"labels": ["fraud", "violence"], "categories": ["fraud"], "threshold": 0.5}}],
    "classifier": [{"name": "kind", "type": "llm", "labels": ["refund", "other"], "instructions": "Which?"}], "systemone": OWN,
}  # fmt: skip


def everything(artifact: Path) -> Recipe:
    leaves: list[dict[str, Any]] = []
    for type, rules in SIGNALS.items():
        for rule in rules:
            name = f"{rule['name']}:hard" if type == "complexity" else rule["name"]
            labels = {"classifier": "refund", "systemone": "billing" if rule["name"] in ("choice", "set", "span") else None}
            leaves.append({"type": type, "name": name, "label": labels.get(type)})
    catalog = {"deployments": {"judge": {"provider": "model_runtime", "artifact": str(artifact)}}, "system": {"decision_model": {"deployment": "judge"}}}
    signals = {KIND_OF_TYPE[type].collection: rules for type, rules in SIGNALS.items()}
    routing = {"signals": signals, "decisions": [{"name": "d", "rules": {"operator": "OR", "conditions": leaves}}]}
    return recipe(routing, **{"global": {"model_catalog": catalog}})


async def asked(found: Recipe, metrics: RouterMetrics, *turns: str) -> Observations:
    environment = RuntimeEnvironment(command=(sys.executable, "-m", "headway.cli.srun"), threads=1, result_cache=0)
    runtimes = Runtimes(metrics, environment)
    deployments = RuntimeDeployments(found.document, runtimes, {})
    extraction = compile_extraction(found, deployments)
    assert extraction.deployments() == {"judge"}
    try:
        deployments.start(extraction.deployments())
        await deployments.wait(timeout=120)
        view = RequestView({"messages": [{"role": "user", "content": turn} for turn in turns]})
        return await extraction.observe(view, Deadline.after(60))
    finally:
        await deployments.close()
        await runtimes.close()


def test_every_question_is_answered_and_they_leave_in_one_call(tmp_path: Path) -> None:
    PluginSet.installed().families.named("vela2", "family").thing.write_fixture(tmp_path, "encoder", 1)
    metrics = RouterMetrics()
    found = asyncio.run(asked(everything(tmp_path), metrics, "The invoice is wrong.", "The invoice is wrong, I said."))
    assert {one.key: one.reason for one in found if one.truth is Truth.UNKNOWN or one.reason} == {}
    assert {one.kind for one in found} == set(SIGNALS)
    assert metrics.value("vsr_model_runtime_stage_decision_calls", "judge", "first") == 1
    later = metrics.value("vsr_model_runtime_stage_decision_calls", "judge", "later")
    assert later == 1  # the hazards of a text that was found unsafe
