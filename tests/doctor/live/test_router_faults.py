"""A router with real runtimes: answers that come too late, a runtime that was killed, content that was not read."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from headway.runtime.plugins import PluginSet
from tests.doctor.live.diagnosed import doctor, first, fixes
from tests.e2e.router_process import METRICS, RunningRouter, started_router, two_models
from tests.runtime.worker_process import worker_process

pytestmark = [pytest.mark.timeout(300), pytest.mark.long]


def package(folder: Path) -> Path:
    """A decision model with random weights: what it says is worth nothing, but it says something."""
    PluginSet.installed().families.named("vela2", "family").thing.write_fixture(folder, "encoder", 1)
    return folder


def document(deployment: dict[str, Any], signal_members: dict[str, Any]) -> dict[str, Any]:
    question = {"type": "noul", "instructions": "Is it urgent?"}
    made = two_models("127.0.0.1:9", "127.0.0.1:9")
    made["routing"]["signals"]["systemone"] = [{"name": "urgent", "question": question, **signal_members}]
    made["routing"]["decisions"].insert(0, {"name": "urgent", "priority": 20, "rules": {"operator": "AND", "conditions": [{"type": "systemone", "name": "urgent"}]}, "modelRefs": [{"model": "large"}]})
    made["global"] = {"model_catalog": {"deployments": {"judge": {"provider": "model_runtime", **deployment}}, "system": {"decision_model": {"deployment": "judge"}}}}
    return made


def router_report(router: RunningRouter, *words: str) -> dict[str, Any]:
    return doctor("router", router.url, "--management", router.management, "--metrics", f"http://127.0.0.1:{METRICS + router.offset}", *words)


def test_a_router_without_faults_is_healthy(tmp_path: Path) -> None:
    with started_router(tmp_path / "router", document({"artifact": str(package(tmp_path / "model"))}, {})) as router:
        report = router_report(router)
    assert not [finding for finding in report["findings"] if finding["confidence"] > 0.5], report["findings"]
    assert all(step["ok"] is not False for step in report["steps"]), report["steps"]


def test_answers_later_than_the_signal_waits(tmp_path: Path) -> None:
    with started_router(tmp_path / "router", document({"artifact": str(package(tmp_path / "model"))}, {"timeout_ms": 1})) as router:
        for number in range(5):
            router.preview(f"request {number} " + "with quite some text in it " * 40)
        finding = first(router_report(router, "--prompt", "is this urgent? " * 40))
    assert finding["rule"] == "R12"
    assert "timeout_ms" in fixes(finding)


def test_a_runtime_that_was_killed(tmp_path: Path) -> None:
    with (
        worker_process(tmp_path, str(package(tmp_path / "model"))) as worker,
        started_router(tmp_path / "router", document({"endpoint": worker.url, "served_name": "model"}, {})) as router,
    ):
        worker.until_status("ready")
        router.until(lambda: not router.preview("hello").json()["signal_errors"])
        worker.process.send_signal(signal.SIGKILL)
        worker.process.wait(20)
        router.until(lambda: bool(router.preview("hello").json()["signal_errors"]))
        finding = first(router_report(router))
    assert finding["rule"] in ("R13", "R19")
    assert worker.url.split("://")[1] in finding["cause"] + fixes(finding) + str(finding["evidence"])


def test_content_that_was_not_read(tmp_path: Path) -> None:
    """`coverage: full` with a limit on the input that the request exceeds: unscanned counts as a match by design."""
    deployment = {"artifact": str(package(tmp_path / "model")), "input": {"max_tokens": 64, "overflow": "window"}}
    with started_router(tmp_path / "router", document(deployment, {"coverage": "full"})) as router:
        long = "nothing urgent here, take your time. " * 200
        for _ in range(3):
            router.preview(long)
        finding = first(router_report(router, "--prompt", long))
    assert finding["rule"] == "R15"
    assert "max_tokens" in fixes(finding)
    assert "on_unscanned: no_match" not in fixes(finding)
