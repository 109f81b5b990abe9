"""Requests with pictures, routed by a real image embedding model that the router runs: a tiny CLIP of a seed."""

from __future__ import annotations

import base64
import tempfile
from pathlib import Path
from typing import Any

import pytest

from headway.wire.embeddings import Media, Text
from tests.e2e.router_process import RunningRouter, backend, started_router, two_models
from tests.router.upstream.scripted_backend import ScriptedBackend, answers
from tests.runtime.multimodal.multimodal_models import FAMILY, MultimodalModels, ask, vectors
from tests.runtime.multimodal.pictures import png

pytestmark = [pytest.mark.e2e, pytest.mark.long]
KNOWN, OTHER = png(50, 40, seed=1), png(40, 50, seed=2)


def url(picture: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(picture).decode()


def talk(*pictures: bytes) -> list[dict[str, Any]]:
    parts = [{"type": "image_url", "image_url": {"url": url(picture)}} for picture in pictures]
    return [{"role": "user", "content": [{"type": "text", "text": "what is this?"}, *parts]}]


def document(endpoint: str, package: Path, threshold: float) -> dict[str, Any]:
    """A picture that is like the known one goes to `large`."""
    found = two_models(endpoint, endpoint)
    rules = [
        {"name": "known", "query_modality": "image", "image_candidates": [url(KNOWN)], "threshold": threshold},
        {"name": "cat", "query_modality": "image", "candidates": ["a cat"], "threshold": 1.0},
    ]
    found["routing"]["signals"]["embeddings"] = rules
    conditions = [{"type": "embedding", "name": rule["name"]} for rule in rules]
    found["routing"]["decisions"] = [{"name": "known", "rules": {"operator": "OR", "conditions": conditions}, "modelRefs": [{"model": "large"}]}]
    found["global"] = {
        "model_catalog": {
            "deployments": {"eyes": {"provider": "model_runtime", "artifact": str(package), "device": "cpu"}},
            "bindings": {"embedding": {"deployment": "eyes", "contract": "embedding.v1"}},
            "embeddings": {"semantic": {"embedding_config": {"enable_soft_matching": False}}},
        }
    }
    return found


def check(router: RunningRouter, asked: ScriptedBackend, likeness: float, to_the_word: float) -> None:
    preview = router.client.post(f"{router.management}/api/v1/routing/preview", json={"messages": talk(OTHER)}).json()
    assert preview["signal_errors"] == {}
    assert preview["signal_values"]["embedding:known"] == pytest.approx(likeness, abs=1e-4)
    assert preview["signal_values"]["embedding:cat"] == pytest.approx(to_the_word, abs=1e-4)
    for pictures, decision in (((KNOWN,), "known"), ((OTHER,), None), ((OTHER, KNOWN), "known"), ((), None)):
        answer = router.chat("", messages=talk(*pictures))
        assert (answer.status_code, answer.headers.get("x-vsr-selected-decision")) == (200, decision)
        assert asked.asked[-1].body["model"] == ("large" if decision else "small")
        assert asked.asked[-1].body["messages"] == talk(*pictures)
    broken = router.client.post(f"{router.management}/api/v1/routing/preview", json={"messages": talk(KNOWN[:200])}).json()
    assert broken["signal_errors"]["embedding:known"].startswith("embedding_")


def test_pictures_decide_where_a_request_goes(tmp_path: Path) -> None:
    models = MultimodalModels(tmp_path / "packages", FAMILY)
    known, other, cat = vectors(ask(models.load("clip"), Media("image", KNOWN), Media("image", OTHER), Text("a cat")))
    likeness, to_the_word = float(known @ other), float(cat @ other)
    assert likeness < 0.9999  # a model that tells the two apart
    with tempfile.TemporaryDirectory(prefix="hw") as folder, backend(answers()) as asked:  # short: sockets lie in it
        settings = {"VLLM_SRUN_DIR": f"{folder}/run", "VLLM_SRUN_CACHE_DIR": f"{folder}/cache", "VLLM_SRUN_CPU_THREADS": "1"}
        with started_router(tmp_path / "router", document(asked.endpoint, models.folder("clip"), (likeness + 1) / 2), **settings) as router:
            check(router, asked, likeness, to_the_word)
            assert router.stop() == 0
