"""Files, their pieces, and finding them again."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headway.errors import NotFoundError, RequestError
from headway.router.deployments.calls import Unanswered
from headway.router.stores.reembedding import reembed_documents
from headway.router.stores.vectors.chunking import Chunking
from headway.router.stores.vectors.ingestion import Ingestion
from headway.router.stores.vectors.store import VectorStores

WORDS = ["cat", "dog", "fish", "bird"]


def vector_of(text: str) -> list[float]:
    found = np.array([text.lower().count(word) + 0.01 for word in WORDS], np.float32)
    return list(found / np.linalg.norm(found))


def model(representation: str = "r1") -> Any:
    async def embed(texts: Sequence[str]) -> Any:
        return np.array([vector_of(text) for text in texts], np.float32), representation

    return embed


def filled(stores: VectorStores, files: dict[str, bytes], embed: Any = None, most: int = 1000) -> str:
    async def work() -> str:
        store = stores.create("animals", {"a": 1})
        ingestion = Ingestion(stores, 2, most)
        for name, content in files.items():
            file = stores.add_file(name, content)
            stores.attach(store.id, file.id, {"name": name})
            ingestion.start(store.id, file.id, Chunking(16, 0), embed or model())
        await ingestion.drain(10)
        return store.id

    return asyncio.run(work())


def search(stores: VectorStores, store: str, text: str, representation: str = "r1", **more: Any) -> list[str]:
    found = stores.search(store, representation, np.array(vector_of(text), np.float32), more.pop("limit", 2), **more)
    return [passage.text for passage in found]


def test_what_was_put_in_is_found_also_after_a_restart(tmp_path: Path) -> None:
    stores = VectorStores(tmp_path / "v.sqlite")
    store = filled(stores, {"a.txt": b"The cat sat.\n" * 3, "b.md": b"A dog ran away.", "c.html": b"<p>One <b>fish</b></p><script>bird</script>"})
    assert search(stores, store, "dog") [0] == "A dog ran away."
    assert search(stores, store, "fish")[0] == "One fish"
    assert stores.find("animals").described()["file_counts"] == {"in_progress": 0, "completed": 3, "failed": 0, "total": 3}
    stores.close()
    again = VectorStores(tmp_path / "v.sqlite")
    assert search(again, store, "dog", least=0.9) == ["A dog ran away."]
    (file,) = [each for each in again.files_of(store) if each.name == "b.md"]
    assert search(again, store, "dog", files=[file.file], limit=9) == ["A dog ran away."]
    assert "A dog ran away." not in search(again, store, "dog", files=["file_x"], limit=9)
    before = again.version(store)
    again.detach(store, file.file)
    assert again.version(store) != before
    assert "A dog ran away." not in search(again, store, "dog", limit=9)
    again.delete(store)
    assert again.counts() == {}
    with pytest.raises(NotFoundError):
        again.find("animals")


def test_files_that_cannot_be_read_fail_with_the_reason_and_harm_no_other(tmp_path: Path) -> None:
    stores = VectorStores(None)
    store = filled(stores, {"bad.txt": b"\xff\xfe\x00", "empty.txt": b"  ", "bad.json": b"{", "good.txt": b"cat"})
    found = {each.name: (each.status, each.error) for each in stores.files_of(store)}
    assert found["good.txt"] == ("completed", None)
    assert [found[name][0] for name in ("bad.txt", "empty.txt", "bad.json")] == ["failed"] * 3
    assert "UTF-8" in str(found["bad.txt"][1])


def test_a_model_that_does_not_answer_and_too_many_pieces_fail_the_file() -> None:
    async def away(texts: Sequence[str]) -> Any:
        return Unanswered("timeout")

    stores = VectorStores(None)
    store = filled(stores, {"a.txt": b"cat"}, away)
    assert "timeout" in str(stores.files_of(store)[0].error)
    store = filled(stores, {"a.txt": b"The cat sat on the mat by the door.\n" * 50}, most=5)
    assert "may have 5" in str(stores.files_of(store)[0].error)


def test_a_file_is_attached_once() -> None:
    stores = VectorStores(None)
    store, file = stores.create("s", {}), stores.add_file("a.txt", b"x")
    stores.attach(store.id, file.id, {})
    with pytest.raises(RequestError, match="already"):
        stores.attach(store.id, file.id, {})


def test_what_a_process_was_reading_when_it_ended_is_failed(tmp_path: Path) -> None:
    stores = VectorStores(tmp_path / "v.sqlite")
    store, file = stores.create("s", {}), stores.add_file("a.txt", b"x")
    stores.attach(store.id, file.id, {})
    stores.close()
    assert VectorStores(tmp_path / "v.sqlite").files_of(store.id)[0].status == "failed"


def test_vectors_of_another_model_are_not_found_until_they_are_made_again() -> None:
    stores = VectorStores(None)
    store = filled(stores, {"a.txt": b"cat", "b.txt": b"dog"}, model("old"))
    assert search(stores, store, "dog", "new") == []
    done = asyncio.run(reembed_documents(stores, model("new")))
    assert (done.done, done.failed) == (2, 0)
    assert search(stores, store, "dog", "new")[0] == "dog"
    assert search(stores, store, "dog", "old") == []
    assert asyncio.run(reembed_documents(stores, model("new"))).done == 0
