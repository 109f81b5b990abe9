"""Every row about refused configurations in docs/troubleshooting*.md, caused on purpose: by `config validate`, and by a router at its start."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from headway.runtime.tasks.family import TaskHeads
from tests.docs.pages import ROOT
from tests.docs.test_troubleshooting_rows import PAGES, hints
from tests.e2e.router_process import started_router, two_models
from tests.runtime.worker_process import worker_process

SECTION = {"troubleshooting.md": "## The router refuses a configuration", "troubleshooting.zh.md": "## 路由器拒绝配置"}
MIGRATE = "vllm-sr config migrate"


def catalog(**parts: Any) -> dict[str, Any]:
    return two_models("127.0.0.1:1", "127.0.0.1:1", **{"global": {"model_catalog": parts}})


def deployment(**fields: Any) -> dict[str, Any]:
    return catalog(deployments={"mine": {"provider": "model_runtime", "artifact": "/models/mine", **fields}})


def guard(**fields: Any) -> dict[str, Any]:
    return catalog(modules={"prompt_guard": fields})


REFUSED: dict[str, dict[str, Any]] = {  # the words of a row -> a configuration that makes them appear
    "removed model execution fields": deployment(precision="fp16"),
    "candle": deployment(provider="candle"),
    "ort": deployment(provider="ort"),
    "openvino": deployment(provider="openvino"),
    "precision": deployment(precision="fp16"),
    "variant": guard(variant="x"),
    "use_mmbert_32k": guard(use_mmbert_32k=True),
    "use_nli": {**catalog(), "routing": {"signals": {"fact_check": [{"name": "needs_fact_check", "use_nli": True}]}}},
    "polarity_guard": two_models("127.0.0.1:1", "127.0.0.1:1", **{"global": {"stores": {"response_cache": {"polarity_guard": {}}}}}),
    "profile was removed": deployment(profile="exact"),
    "artifact must be a Hub repository ID or an absolute package path": deployment(artifact="../mine"),
    "revision must be a 40-hex commit": deployment(artifact="acme/tiny", revision="main"),
}
AT_START = "a binding does not match the model"


@pytest.mark.parametrize("page", PAGES)
def test_the_rows_are_those_that_are_caused_here(page: str) -> None:
    assert hints(page, SECTION[page]) == {*REFUSED, AT_START}


@pytest.mark.parametrize("words", REFUSED)
def test_validate_refuses_and_names_the_way_out(words: str, tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(REFUSED[words], sort_keys=False))
    command = [sys.executable, "-m", "headway.cli.sr", "config", "validate", "--offline", "--config", str(file)]
    done = subprocess.run(command, cwd=ROOT, env={"PYTHONPATH": str(ROOT / "src"), "PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=False)
    said = done.stdout + done.stderr
    assert done.returncode == 1
    assert words in said
    assert "line " in said
    assert (MIGRATE in said) == (words not in ("artifact must be a Hub repository ID or an absolute package path", "revision must be a 40-hex commit"))


def test_a_binding_that_does_not_match_ends_the_start(tmp_path: Path) -> None:
    """An embedding model cannot tell domains; the router asks the runtime for its card and sees that."""
    TaskHeads().write_fixture(tmp_path / "model", "embedding-bert", seed=1)
    with worker_process(tmp_path, str(tmp_path / "model"), environment={"HEADWAY_CACHE": str(tmp_path / "cache")}) as worker:
        worker.until_status("ready")
        document = catalog(
            deployments={"mine": {"provider": "model_runtime", "endpoint": worker.url, "served_name": "model"}},
            bindings={"domain_classifier": {"deployment": "mine", "contract": "label_distribution.v1"}},
        )
        document["routing"]["signals"]["domains"] = [{"name": "law"}]
        document["routing"]["decisions"][0]["rules"]["conditions"].append({"type": "domain", "name": "law"})
        with started_router(tmp_path / "router", document, wait=False) as router:
            assert router.process.wait(60) != 0
            assert AT_START in router.log.read_text()
