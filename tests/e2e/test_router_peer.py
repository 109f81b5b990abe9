"""The command line of vllm-sr itself works against our ports. Needs the path of its executable in HEADWAY_VLLM_SR_PEER."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.e2e.router_process import RunningRouter, backend, started_router, two_models
from tests.router.upstream.scripted_backend import answers

PEER = os.environ.get("HEADWAY_VLLM_SR_PEER", "")
pytestmark = pytest.mark.skipif(not Path(PEER).is_file(), reason="HEADWAY_VLLM_SR_PEER names no executable")


@pytest.fixture
def router(tmp_path: Path) -> Iterator[RunningRouter]:
    with backend(answers()) as one, started_router(tmp_path, two_models(one.endpoint, one.endpoint)) as found:
        yield found


def peer(router: RunningRouter, *words: str) -> str:
    environment = {**os.environ, "VLLM_SR_PORT_OFFSET": str(router.offset), "NO_COLOR": "1"}
    folder = router.config.parent / "peer"
    folder.mkdir(exist_ok=True)
    done = subprocess.run([PEER, *words], cwd=folder, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_its_preview_reads_ours(router: RunningRouter) -> None:
    told = peer(router, "route", "preview", "--prompt", "a python question")
    assert "large" in told
    assert "code" in told
    whole = json.loads(peer(router, "route", "preview", "--prompt", "hello", "--trace", "--json", "--sampling-seed", "7", "--session-id", "s"))
    assert whole["selected_model"] == "small"
    assert whole["eval_trace"][0]["root_trace"]["node_type"] == "AND"


def test_its_config_commands_change_our_configuration(router: RunningRouter) -> None:
    endpoint = ("--endpoint", router.management)
    shown = yaml.safe_load(peer(router, "config", "get", *endpoint))
    assert shown == yaml.safe_load(router.config.read_text())
    shown["routing"]["signals"]["keywords"][0]["keywords"] = ["rust"]
    new = router.config.parent / "peer" / "new.yaml"
    new.write_text(yaml.safe_dump(shown, sort_keys=False))
    planned = json.loads(peer(router, "config", "plan", "--config", str(new), *endpoint))
    assert planned["changed"]
    applied = json.loads(peer(router, "config", "apply", "--config", str(new), *endpoint))
    assert applied["applied"]
    assert router.preview("rust").json()["selected_model"] == "large"
    versions = json.loads(peer(router, "config", "versions", *endpoint))
    assert [each["version"] for each in versions["versions"]] == ["2", "1"]
    peer(router, "config", "rollback", "1", *endpoint)
    assert router.preview("rust").json()["selected_model"] == "small"
    again = json.loads(peer(router, "config", "apply", "--config", str(router.config), *endpoint))
    assert again["reason"] == "unchanged"


def test_its_chat_and_probe_talk_through_our_listener(router: RunningRouter) -> None:
    told = peer(router, "request", "chat", "--base-url", router.url, "a", "python", "question")
    assert "hello" in told
    probe = json.loads(peer(router, "route", "probe", "--base-url", router.url, "--prompt", "python", "--expect-decision", "code", "--expect-selected-model", "large"))
    assert probe["passed"]
