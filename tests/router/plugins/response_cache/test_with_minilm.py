"""The guard on top of the likeness that a real embedding model sees."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sentence_transformers import SentenceTransformer

from headway.artifacts.resolve import resolve
from tests.router.plugins.response_cache.backends import cache
from tests.router.plugins.response_cache.test_near_but_different import DIFFERENT_TEXTS, SAME_TEXTS
from tests.router.plugins.rig import Rig, run
from tests.router.scripted_calls import ScriptedCalls

pytestmark = pytest.mark.e2e



@pytest.fixture(scope="module")
def models() -> ScriptedCalls:
    model = SentenceTransformer(str(resolve("all-minilm-l6-v2")), device="cpu")
    return ScriptedCalls(vectors=lambda text: [float(number) for number in model.encode(text, normalize_embeddings=True)])


def test_no_threshold_is_low_enough_for_texts_that_mean_something_else(tmp_path: Path, models: ScriptedCalls) -> None:
    async def work() -> None:
        similar = 0
        for number, (first, second) in enumerate(DIFFERENT_TEXTS):
            rig = Rig(tmp_path / str(number), cache(semantic={"similarity_threshold": 0.0}), models=models)
            await rig.ask(first)
            told: Any = await rig.ask(second)
            assert told.path == "upstream", (first, second)
            similar += float(told.context.response_headers["x-vsr-cache-similarity"]) > 0.8
        assert similar >= 4  # likeness alone would have given wrong answers

    run(work, 60)


def test_texts_that_differ_without_weight_are_hits_at_the_usual_threshold(tmp_path: Path, models: ScriptedCalls) -> None:
    async def work() -> None:
        rig = Rig(tmp_path, cache(), models=models)
        for first, second in SAME_TEXTS[:2]:
            await rig.ask(first)
            assert (await rig.ask(second)).path == "cache", second

    run(work, 60)
