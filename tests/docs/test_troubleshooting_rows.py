"""Every row of the tables about models in docs/troubleshooting*.md, caused on purpose in a real worker."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from headway.runtime.package import Package
from headway.runtime.selfcheck.golden_reference import beside, write_reference
from tests.artifacts.loopback_hub import COMMIT, hub, json_answer
from tests.artifacts.loopback_server import Answer, Request, loopback
from tests.docs.pages import ROOT, blocks
from tests.runtime.toy_plugins import CARD, WEIGHTS, tensor_file, write_toy
from tests.runtime.worker_process import install_toys, worker_process

PAGES = ("troubleshooting.md", "troubleshooting.zh.md")
FAILED = {  # section of the English and of the Chinese page -> words of its first column
    "troubleshooting.md": "## A model `failed`",
    "troubleshooting.zh.md": "## 模型 `failed`",
}
UNVERIFIED = {"troubleshooting.md": "## A ready model is `unverified`", "troubleshooting.zh.md": "## 就绪的模型是 `unverified`"}
CAUSES = {  # the words of a row -> the model that shows them
    "a file hash does not match": "damaged",
    "a revision is required": "loose",
    "access denied, gated or private": "gated",
    "does not fit": "large",
    "out of memory": "exhausted",
    "device not available": "away",
    "built without LAPACK": "lapack",
    "FP8 weights need an NVIDIA GPU of compute capability 8.9 or later or an AMD Instinct MI300 or MI350 series GPU": "fp8",
    "NVFP4 packages need FP4 tensor cores; serve NVFP4 packages on a Blackwell GPU": "nvfp4",
    "no family recognizes the package": "unknown",
    "a licence must be accepted": "restricted",
}
KERNELS: dict[str, dict[str, str]] = {  # the words of a row -> what the device says of its kernels
    "FLA is not installed": {},
    "they were recorded with FLA 0.5.2, not": {"TOY_KERNELS": '{"FLA": "0.4.1"}'},
    "failed to import": {"TOY_KERNELS": '{"FLA": "!undefined symbol"}'},
    "has no autotuned kernel": {"TOY_KERNELS": '{"FLA": "0.5.2"}', "TOY_UNTUNED": '{"FLA": "chunk_delta"}'},
}


def hints(page: str, section: str) -> set[str]:
    """The words in backticks of the first column of the table of a section."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8").split(section + "\n", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)
    return {word for row in rows for word in re.findall(r"`([^`]+)`", row)}


def a_hub(request: Request) -> Answer:
    """One repository whose weights are not those of its listing, and one that is gated."""
    if "acme/gated" in request.path:
        return json_answer({"error": "restricted"}, 403, **{"X-Error-Code": "GatedRepo"})
    return hub({CARD: b"{}", WEIGHTS: tensor_file(elements=8)}, repo="acme/damaged", listed={WEIGHTS: tensor_file("BF16", elements=16)})(request)


def entries(folder: Path) -> list[dict[str, Any]]:
    def toy(name: str, **fields: Any) -> str:
        return str(write_toy(folder / name, **fields))

    fp8 = toy("fp8")
    Path(fp8, WEIGHTS).write_bytes(tensor_file("F8_E4M3"))
    (folder / "unknown").mkdir()
    (folder / "unknown/config.json").write_text("{}")
    return [
        {"model": "acme/damaged", "revision": COMMIT, "name": "damaged"},
        {"model": "acme/loose", "name": "loose"},
        {"model": "acme/gated", "revision": COMMIT, "name": "gated"},
        {"model": toy("large"), "name": "large", "memory_budget_gib": 0.5},
        {"model": toy("exhausted", fault="memory"), "name": "exhausted"},
        {"model": toy("away"), "name": "away", "device": "cuda:7"},
        {"model": toy("lapack", needs=["lapack"]), "name": "lapack", "device": "old"},
        {"model": fp8, "name": "fp8", "device": "old"},
        {"model": toy("nvfp4", needs=["nvfp4"]), "name": "nvfp4", "device": "old"},
        {"model": str(folder / "unknown"), "name": "unknown"},
        {"model": toy("restricted", licence="cc-by-nc-4.0"), "name": "restricted"},
    ]


@pytest.fixture(scope="module")
def toys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install_toys(tmp_path_factory.mktemp("plugins"))


@pytest.mark.parametrize("page", PAGES)
def test_the_rows_are_those_that_are_caused_here(page: str) -> None:
    assert hints(page, FAILED[page]) == set(CAUSES)
    assert hints(page, UNVERIFIED[page]) == set(KERNELS)


def test_every_reason_of_a_model_that_failed(toys: Path, tmp_path: Path) -> None:
    models = tmp_path / "models.json"
    models.write_text(json.dumps({"models": entries(tmp_path)}))
    with loopback(a_hub) as server:
        environment = {"HEADWAY_CACHE": str(tmp_path / "cache"), "HF_HUB_CACHE": str(tmp_path / "hub"), "HF_ENDPOINT": server.url}
        with worker_process(toys, "--models", str(models), "--load-attempts", "1", environment=environment) as worker:
            worker.until_status("failed")
            reasons = {card["id"]: card["reason"] for card in worker.client.get("/v1/models").json()["data"]}
            said = {words: reasons[name] for words, name in CAUSES.items()}
            assert {words: reason for words, reason in said.items() if words not in reason} == {}


@pytest.mark.parametrize("words", KERNELS)
def test_every_reason_of_a_model_that_is_unverified(words: str, toys: Path, tmp_path: Path) -> None:
    folder = write_toy(tmp_path / "toy")
    model = ("--device", "old", str(folder))
    environment = {"HEADWAY_CACHE": str(tmp_path / "cache"), **KERNELS[words]}
    with worker_process(toys, *model, environment=environment) as worker:
        worker.until_status("ready")
        identity = worker.client.get("/v1/models").json()["data"][0]["model_sha256"]
    write_reference(beside(Package("toy", folder)), identity, "old", {}, {"FLA": "0.5.2"})
    with worker_process(toys, *model, environment=environment) as worker:
        worker.until_status("ready")
        golden = worker.client.get("/v1/models").json()["data"][0]["golden"]
        assert golden["status"] == "unverified"
        assert golden["reason"].startswith("kernel choices not applied")
        assert words in golden["reason"]


@pytest.mark.parametrize("page", PAGES)
def test_a_package_that_was_downloaded_before_is_served_without_a_network(page: str, toys: Path, tmp_path: Path) -> None:
    [block] = [block for block in blocks(ROOT / "docs" / page) if block.tag == "hub"]
    _, repo, revision = re.search(r"(hf download) (\S+) \\\n\s+--revision ([0-9a-f]{40})", block.text).groups()  # type: ignore[union-attr]
    cache = tmp_path / "cache"
    own = {"HEADWAY_CACHE": str(cache), "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    with loopback(hub({CARD: b"{}", WEIGHTS: tensor_file()}, repo=repo, commit=revision)) as server:
        done = subprocess.run(["bash", "-euc", block.text], env={**os.environ, **own, "HF_ENDPOINT": server.url}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    offline = {**own, "HF_HUB_OFFLINE": "1", "HF_ENDPOINT": "http://127.0.0.1:9"}
    with worker_process(toys, repo, "--cache-dir", str(cache / "model-runtime"), "--family", "toy", environment=offline) as worker:
        worker.until_status("ready")
        card = worker.client.get("/v1/models").json()["data"][0]
        assert (card["repo"], card["revision"]) == (repo, revision)
