"""rag: passages of the router's documents in a request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headway.errors import ConfigError, HeadwayError
from headway.router.deployments.calls import Answered, Unanswered
from headway.router.plugins.models import embedded
from headway.router.stores.vectors.chunking import Chunking
from headway.router.stores.vectors.ingestion import Ingestion
from tests.router.plugins.rig import EMBEDDING, Rig, run
from tests.router.scripted_calls import ScriptedCalls

SETTINGS = {**EMBEDDING, "stores": {"vector_store": {"enabled": True, "metadata_store": "memory"}}}
FILES = {"cats.txt": b"Cats sleep all day.", "dogs.txt": b"Dogs chase cats.", "sea.txt": b"Fish swim."}
RERANKED = {"model_bindings": {"rag.reranker": {"deployment": "rr", "contract": "relevance_scores.v1"}}}


def vectors(given: Any) -> list[float]:
    return [given.lower().count(word) + 0.01 for word in ("cat", "dog", "fish")]


class Models(ScriptedCalls):
    async def rerank(self, deployment: str, query: str, documents: Any, *, timeout: float | None = None) -> Any:
        self.calls.append(("rerank", deployment, list(documents)))
        return [Answered(1.0 if "Dogs" in text else 0.1) for text in documents]


async def rig_with_files(tmp_path: Path, models: ScriptedCalls | None = None, routing: Any = None, **configuration: Any) -> Rig:
    plugin = ("rag", {"enabled": True, "backend": "vectorstore", "backend_config": {"vector_store_id": "pets"}, **configuration})
    rig = Rig(tmp_path, plugin, settings=SETTINGS, models=models or Models(vectors=vectors), routing=routing)
    stores = rig.services.vector_stores.open(rig.document, tmp_path)
    assert stores is not None
    store, ingestion = stores.create("pets", {}), Ingestion(stores, 1, 100)

    async def embed(texts: Any) -> Any:
        made = await embedded(Models(vectors=vectors), "emb", texts)
        assert not isinstance(made, Unanswered)
        return made.vectors, made.representation

    for name, content in FILES.items():
        file = stores.add_file(name, content)
        stores.attach(store.id, file.id, {})
        ingestion.start(store.id, file.id, Chunking(), embed)
    await ingestion.drain(5)
    return rig


def test_passages_come_as_the_result_of_a_tool(tmp_path: Path) -> None:
    async def work() -> None:
        rig = await rig_with_files(tmp_path, similarity_threshold=0.6)
        await rig.ask("my cat")
        user, call, result = rig.sent[0]["messages"]
        assert user["content"] == "my cat"
        assert call["tool_calls"][0]["function"]["name"] == "retrieve_documents"
        assert (result["role"], result["tool_call_id"]) == ("tool", call["tool_calls"][0]["id"])
        assert result["content"] == "[cats.txt]\nCats sleep all day.\n\n[dogs.txt]\nDogs chase cats."

    run(work)


def test_passages_before_the_instructions_within_a_length(tmp_path: Path) -> None:
    async def work() -> None:
        rig = await rig_with_files(tmp_path, injection_mode="system_prompt", max_context_length=35, similarity_threshold=0.6)
        await rig.ask("my cat")
        assert rig.sent[0]["messages"][0] == {"role": "system", "content": "Use these documents where they help:\n\n[cats.txt]\nCats sleep all day."}

    run(work)


def test_nothing_that_fits_adds_nothing(tmp_path: Path) -> None:
    async def work() -> None:
        rig = await rig_with_files(tmp_path, similarity_threshold=0.999)
        await rig.ask("cat dog fish")
        assert len(rig.sent[0]["messages"]) == 1
        assert rig.services.metrics.value("rag_retrieval_attempts", "d", "empty") == 1

    run(work)


def test_a_reranker_has_the_last_word(tmp_path: Path) -> None:
    async def work() -> None:
        rig = await rig_with_files(tmp_path, routing=RERANKED, rerank={"top_k": 1}, similarity_threshold=0.1)
        await rig.ask("my cat")
        assert rig.sent[0]["messages"][-1]["content"] == "[dogs.txt]\nDogs chase cats."

    run(work)


@pytest.mark.parametrize(("policy", "warnings"), [("skip", []), ("warn", ["retrieval_failed"])])
def test_a_look_up_that_fails(tmp_path: Path, policy: str, warnings: list[str]) -> None:
    async def work() -> None:
        rig = await rig_with_files(tmp_path, ScriptedCalls(vectors=lambda _: Unanswered("timeout")), on_failure=policy)
        told = await rig.ask("my cat")
        assert (told.context.warnings, len(rig.sent[0]["messages"])) == (warnings, 1)
        blocked = await rig_with_files(tmp_path, ScriptedCalls(vectors=lambda _: Unanswered("timeout")), on_failure="block")
        with pytest.raises(HeadwayError) as caught:
            await blocked.ask("my cat")
        assert caught.value.reason == "retrieval_failed"

    run(work)


def test_results_are_kept_until_the_store_changes(tmp_path: Path) -> None:
    async def work() -> None:
        rig = await rig_with_files(tmp_path, cache_results=True)
        for _ in range(2):
            await rig.ask("my cat")
        assert [call[0] for call in rig.models.calls].count("embed") == 1
        stores = rig.services.vector_stores.open(rig.document, tmp_path)
        assert stores is not None
        store = stores.find("pets").id
        for each in stores.files_of(store):
            if each.name == "cats.txt":
                stores.detach(store, each.file)
        await rig.ask("my cat")
        assert "cats.txt" not in rig.sent[2]["messages"][-1]["content"]
        assert [rig.services.metrics.value(f"rag_cache_{word}", "d") for word in ("hits", "misses")] == [1, 2]

    run(work)


def test_a_store_that_is_off_or_a_reranker_without_a_model_is_refused(tmp_path: Path) -> None:
    plugin = {"enabled": True, "backend": "vectorstore", "backend_config": {"vector_store_id": "x"}}
    with pytest.raises(ConfigError, match="switched off"):
        Rig(tmp_path, ("rag", plugin))
    with pytest.raises(ConfigError, match=r"rag\.reranker"):
        Rig(tmp_path, ("rag", {**plugin, "rerank": {"top_k": 1}}), settings=SETTINGS)


def test_a_low_confidence_looks_nothing_up(tmp_path: Path) -> None:
    async def work() -> None:
        rig = await rig_with_files(tmp_path, min_confidence_threshold=0.5)
        await rig.ask("my cat")
        assert rig.models.calls == []

    run(work)
