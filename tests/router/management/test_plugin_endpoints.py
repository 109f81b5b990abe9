"""Cache, replays, compression, documents and stored vectors over the management address."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import httpx

from headway.router.management.access import Access
from headway.router.management.app import ManagementApp
from headway.router.management.state import ManagementState
from tests.router.plugins.response_cache.backends import cache
from tests.router.plugins.rig import EMBEDDING, Rig, alike, run
from tests.router.scripted_calls import ScriptedCalls

SETTINGS = {
    **EMBEDDING,
    "stores": {"vector_store": {"enabled": True, "metadata_store": "memory"}, "response_cache": {"backend_type": "sqlite"}},
    "services": {"router_replay": {"enabled": True, "capture_request_body": True}},
}
AUTH = {"management_api": {"auth": {"mode": "bearer", "tokens": [{"env": "A", "role": "admin"}, {"env": "V", "role": "viewer"}]}}}


class Held:
    """The one generation of a rig."""

    def __init__(self, rig: Rig) -> None:
        self.current = rig.generation

    @contextmanager
    def use(self) -> Iterator[Any]:
        yield self.current


class Management:
    def __init__(self, rig: Rig, token: str = "") -> None:
        access = Access.of(rig.document, {"A": "admin-token", "V": "viewer-token"})
        state = cast(ManagementState, SimpleNamespace(generations=Held(rig), services=rig.services, access=access))
        headers = {"authorization": f"Bearer {token}"} if token else {}
        transport = httpx.ASGITransport(ManagementApp(state))  # type: ignore[arg-type]
        self.http = httpx.AsyncClient(transport=transport, base_url="http://m", headers=headers)

    async def __call__(self, method: str, path: str, status: int = 200, **more: Any) -> Any:
        answer = await self.http.request(method, f"/api/v1/{path}", **more)
        assert answer.status_code == status, answer.text
        return answer.json()


def rig(tmp_path: Path, models: ScriptedCalls | None = None, settings: Any = SETTINGS) -> Rig:
    return Rig(tmp_path, cache(scope="global"), settings=settings, models=models)


def test_entries_are_seen_deleted_invalidated_and_flushed(tmp_path: Path) -> None:
    async def work() -> None:
        made = rig(tmp_path)
        ask = Management(made)
        for text in ("what is rain", "what is snow", "what is hail"):
            told = await made.ask(text)
        hit = await made.ask("what is hail")
        listed = await ask("GET", "response-cache/entries")
        assert (listed["total"], listed["data"][0]["decision"]) == (3, "d")
        assert "rain" not in str(listed)
        name = hit.context.response_headers["x-vsr-cache-entry"]
        shown = await ask("GET", f"response-cache/entries/{name}?content=true")
        assert (shown["query"], shown["response"]["choices"][0]["message"]["content"]) == ("what is hail", told.text)
        stats = await ask("GET", "response-cache/stats")
        assert (stats["entries"], stats["hits"], stats["misses"], stats["by_representation"]) == (3, 1, 3, {"model-1": 3})
        assert (await ask("DELETE", f"response-cache/entries/{name}"))["deleted"] is True
        await ask("DELETE", f"response-cache/entries/{name}", 404)
        assert (await made.ask("what is hail")).path == "upstream"
        dry = await ask("POST", "response-cache/invalidate", json={"selector": {"decision": "d"}})
        assert dry == {"dry_run": True, "matched": 3, "removed": 0}
        await ask("POST", "response-cache/invalidate", 400, json={"selector": {}})
        none = await ask("POST", "response-cache/invalidate", json={"decision": "other", "dry_run": False})
        assert none["removed"] == 0
        await ask("POST", "response-cache/flush", 400, json={"confirm": "yes"})
        assert (await ask("POST", "response-cache/flush", json={"confirm": "flush response cache"}))["removed"] == 3
        lines = (await ask("GET", "response-cache/audit"))["data"]
        assert [line["action"] for line in lines] == ["delete", "invalidate", "flush"]
        assert [line["previous"] for line in lines[1:]] == [line["hash"] for line in lines[:-1]]
        assert (await ask("GET", "response-cache/health"))["status"] == "healthy"
        assert (await ask("GET", "response-cache/capabilities"))["backend"] == "sqlite"
        guard = await ask("POST", "response-cache/test", json={"configuration": {"enabled": True, "mode": "x"}, "queries": ["on", "off"]})
        assert (guard["valid"], guard["errors"][0]["field"], guard["guard"]["difference"]) == (False, "mode", "opposite")
        await made.services.close()

    run(work)


def test_content_needs_its_permissions(tmp_path: Path) -> None:
    async def work() -> None:
        made = rig(tmp_path, settings={**SETTINGS, "services": {**SETTINGS["services"], **AUTH}})
        viewer, admin = Management(made, "viewer-token"), Management(made, "admin-token")
        await made.ask("what is rain")
        (entry,) = (await viewer("GET", "response-cache/entries"))["data"]
        await viewer("GET", f"response-cache/entries/{entry['id']}?content=true", 403)
        await viewer("POST", "response-cache/flush", 403, json={"confirm": "flush response cache"})
        assert (await admin("GET", f"response-cache/entries/{entry['id']}?content=true"))["query"] == "what is rain"
        (record,) = (await viewer("GET", "observability/replays"))["data"]
        assert "request_body" not in record
        assert "rain" in (await admin("GET", f"observability/replays/{record['id']}"))["request_body"]
        await made.services.close()

    run(work)


def test_replays_and_outcomes(tmp_path: Path) -> None:
    async def work() -> None:
        made = rig(tmp_path)
        ask = Management(made)
        for _ in range(2):
            told = await made.ask("what is rain", session="s1")
        page = await ask("GET", "observability/replays?limit=1&cache_status=hit&session_id=s1")
        assert (page["total"], page["data"][0]["id"]) == (1, told.context.replay_id)
        await ask("GET", "observability/replays?limit=101", 400)
        assert (await ask("GET", "observability/replays/aggregate"))["cache_statuses"] == {"hit": 1, "miss": 1}
        assert len((await ask("GET", "observability/replays/trajectory?session_id=s1"))["data"]) == 2
        outcome = {"replay_id": told.context.replay_id, "target": "model", "verdict": "good"}
        first = await ask("POST", "observability/outcomes", 201, json=outcome, headers={"idempotency-key": "k"})
        assert await ask("POST", "observability/outcomes", json=outcome, headers={"idempotency-key": "k"}) == first
        await ask("POST", "observability/outcomes", 409, json={**outcome, "verdict": "bad"}, headers={"idempotency-key": "k"})
        await ask("POST", "observability/outcomes", 404, json={**outcome, "replay_id": "nope"})
        await ask("POST", "observability/outcomes", 400, json={**outcome, "more": 1})
        assert (await ask("GET", f"observability/replays/{told.context.replay_id}"))["outcomes"][0]["verdict"] == "good"
        await made.services.close()

    run(work)


def test_what_is_switched_off_says_so(tmp_path: Path) -> None:
    async def work() -> None:
        made = Rig(tmp_path, settings={**EMBEDDING, "stores": {"response_cache": {"enabled": False}}})
        ask = Management(made)
        for path in ("observability/replays", "storage/vector-stores", "response-cache/stats"):
            assert "is not configured" in (await ask("GET", path, 503))["error"]["message"]

    run(work)


def words(given: Any) -> list[float]:
    return [given.lower().count(word) + 0.01 for word in ("cat", "dog")]


def test_documents_are_uploaded_read_searched_and_deleted(tmp_path: Path) -> None:
    async def work() -> None:
        made = rig(tmp_path, ScriptedCalls(vectors=words))
        ask = Management(made)
        store = await ask("POST", "storage/vector-stores", 201, json={"name": "pets", "metadata": {"a": 1}})
        files = []
        for name, content in (("cat.txt", b"A cat."), ("dog.md", b"A dog.")):
            file = await ask("POST", "storage/files", 201, files={"file": (name, content)}, data={"purpose": "assistants"})
            await ask("POST", f"storage/vector-stores/{store['id']}/files", 201, json={"file_id": file["id"], "attributes": {"n": name}})
            files.append(file["id"])
        await ask("POST", "storage/files", 400, files={"file": ("x.exe", b"MZ")})
        await ask("POST", "storage/files", 400, json={})
        await made.services.vector_stores.ingestion(cast(Any, made.services.vector_stores.open(made.document, tmp_path)), cast(Any, None)).drain(5)
        found = await ask("POST", f"storage/vector-stores/{store['id']}/search", json={"query": "dog", "max_num_results": 1})
        assert (found["data"][0]["content"][0]["text"], found["data"][0]["attributes"]) == ("A dog.", {"n": "dog.md"})
        for threshold in ("high", None, [1]):
            body = {"query": "dog", "ranking_options": {"score_threshold": threshold}}
            await ask("POST", f"storage/vector-stores/{store['id']}/search", 400, json=body)
        assert (await ask("GET", "storage/vector-stores"))["data"][0]["file_counts"]["completed"] == 2
        content = await ask.http.get(f"/api/v1/storage/files/{files[0]}/content")
        assert content.content == b"A cat."
        renamed = await ask("POST", f"storage/vector-stores/{store['id']}", json={"name": "animals"})
        assert (renamed["name"], renamed["metadata"]) == ("animals", {"a": 1})
        await ask("DELETE", f"storage/vector-stores/animals/files/{files[0]}")
        await ask("DELETE", f"storage/files/{files[1]}")
        assert (await ask("POST", "storage/vector-stores/animals/search", json={"query": "dog"}))["data"] == []
        await ask("DELETE", f"storage/vector-stores/{store['id']}")
        await ask("GET", f"storage/vector-stores/{store['id']}", 404)
        await made.services.close()

    run(work)


def test_vectors_are_made_again_after_the_model_changed(tmp_path: Path) -> None:
    async def work() -> None:
        old = rig(tmp_path, ScriptedCalls(vectors=alike, representation="old"))
        for text in ("what is rain", "what is snow"):
            await old.ask(text)
        await old.services.close()
        new = rig(tmp_path, ScriptedCalls(vectors=alike, representation="new"))
        ask = Management(new)
        assert (await new.ask("what is rain")).path == "upstream"
        assert (await ask("GET", "storage/representations"))["response_cache"] == {"old": 2, "new": 1}
        done = await ask("POST", "storage/reembed")
        assert done["response_cache"] == [{"recipe": "default", "done": 2, "failed": 0, "stopped": None}]
        assert (await ask("GET", "storage/representations"))["response_cache"] == {"new": 2}
        told = await new.ask("what is snow")
        assert (told.path, told.text) == ("cache", "answer 2")
        assert (await ask("POST", "storage/reembed"))["response_cache"][0]["done"] == 0
        await new.services.close()

    run(work)


def test_compression_is_previewed_without_text(tmp_path: Path) -> None:
    async def work() -> None:
        ask = Management(rig(tmp_path))
        text = "".join(f"Line {number} of the secret report.\n" for number in range(2000))
        body = {"configuration": {"mode": "always"}, "messages": [{"role": "tool", "content": text}, {"role": "user", "content": "line 7"}]}
        found = await ask("POST", "context-compression/preview", json=body)
        assert found["messages"][0]["tokens_after"] < 1200 < found["messages"][0]["tokens_before"]
        assert "secret" not in str(found)
        await ask("POST", "context-compression/preview", 400, json={"messages": "x"})
        await ask("POST", "context-compression/preview", 400, json={**body, "configuration": {"mode": "x"}})
        assert (await ask("GET", "context-compression/stats"))["saved_tokens"] == {"d": 0.0}

    run(work)
