"""E07, E08, E10: the response cache of a real router - near but different, never across users, never across embedding models."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.cases.router_case import attached, decision, document, runtime
from tests.e2e.router_process import RunningRouter, backend, command, started_router
from tests.router.deployments.fake_runtime import Body, noul_card
from tests.router.upstream.scripted_backend import answers

KEYS = [{"name": name, "key": f"key-of-{name}"} for name in ("alice", "bob")]
HIT, SIMILARITY, ENTRY = "x-vsr-cache-hit", "x-vsr-cache-similarity", "x-vsr-cache-entry"
WIDTH = 8
LONG = " ".join(f"word{number % 17}" for number in range(300)) + " what is my balance"
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


def embeddings(sha: str = "a", width: int = WIDTH, layer: int = 6) -> Any:
    """A model that finds all texts the same: only guard, fields and identities keep them apart."""

    async def script(body: Body) -> Any:
        data = [{"index": at, "embedding": [width**-0.5] * width} for at, _ in enumerate(body["input"])]
        return {"object": "list", "data": data, "meta": {"representation": {"model_sha256": sha * 64, "layer": layer, "dimension": width}}}

    return script


@contextmanager
def caching_router(folder: Path, script: Any, backend_type: str = "memory", **plugin: Any) -> Iterator[RunningRouter]:
    """Every key is a user; without a listener that asks for keys nobody is."""
    card = noul_card("emb", surfaces=["embeddings"], question_types=[], embedding={"dimensions": [4, WIDTH], "layers": [6]})
    caches = [{"type": "response_cache", "configuration": {"enabled": True, **plugin}}]
    off = {"routing": {"decisions": [decision("plain")]}, "name": "off"}
    strict = {"routing": {"decisions": [decision("strict", plugins=[{"type": "response_cache", "configuration": {"enabled": True, "mode": "exact"}}])]}, "name": "strict"}
    with backend(answers()) as one, runtime(card, embeddings=script) as model:
        catalog = {"deployments": {"emb": attached(model, "emb")}, "bindings": {"embedding": {"deployment": "emb", "contract": "embedding.v1"}}}
        settings = {"model_catalog": catalog, "stores": {"response_cache": {"backend_type": backend_type}}}
        names = [{"model_names": [f"case/{name}"], "recipe": name} for name in ("off", "strict")]
        whole = document({"m": one.endpoint}, {"decisions": [decision("cached", plugins=caches)]}, recipes=[off, strict], entrypoints=names, **{"global": settings})
        whole["listeners"][0]["keys"] = KEYS
        with started_router(folder, whole) as found:
            found.until(lambda: found.get("/api/v1/inventory/model-runtime").text.count('"state":"ready"') > 0)
            yield found


def ask(router: RunningRouter, text: str, who: str = "alice", headers: dict[str, str] | None = None, **more: Any) -> httpx.Response:
    answer = router.chat(text, headers={"authorization": f"Bearer key-of-{who}", **(headers or {})}, **more)
    assert answer.status_code == 200, answer.text
    return answer


def is_hit(answer: httpx.Response) -> bool:
    assert (answer.headers["x-vsr-response-path"] == "cache") == (answer.headers.get(HIT) == "true")
    return answer.headers.get(HIT) == "true"


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    with caching_router(tmp_path_factory.mktemp("cache"), embeddings(), mode="exact_then_semantic", semantic={"similarity_threshold": 0.9}) as found:
        yield found


@pytest.mark.parametrize(
    ("first", "second"),
    [("what is 2+2", "what is 2+3"), ("refund order 1001", "refund order 1002"), ("turn the light on", "turn the light off")],
)
def test_e07_texts_that_differ_in_what_counts(router: RunningRouter, first: str, second: str) -> None:
    assert [is_hit(ask(router, text)) for text in (first, second, first, second)] == [False, False, True, True]


def test_e07_the_same_word_after_two_conversations(router: RunningRouter) -> None:
    for said in ("Delete all files?", "Save all files?"):
        messages = [{"role": "user", "content": "go on"}, {"role": "assistant", "content": said}, {"role": "user", "content": "yes"}]
        assert [is_hit(ask(router, "", messages=messages)) for _ in range(2)] == [False, True]


@pytest.mark.parametrize(
    "change",
    [
        {"messages": [{"role": "system", "content": "You are a pirate."}, {"role": "user", "content": "what is rain"}]},
        {"tools": [TOOL]},
        {"temperature": 0.1},
        {"model": "auto"},
        {"response_format": {"type": "json_object"}},
        {"messages": [{"role": "user", "content": "was ist Regen"}]},
    ],
    ids=["system", "tools", "temperature", "model", "format", "language"],
)
def test_e07_a_field_that_can_change_the_answer(router: RunningRouter, change: dict[str, Any]) -> None:
    ask(router, "what is rain")
    assert is_hit(ask(router, "what is rain"))
    assert [is_hit(ask(router, "what is rain", **change)) for _ in range(2)] == [False, True]


def test_e07_a_hit_says_so_and_a_bad_entry_can_be_dropped(router: RunningRouter) -> None:
    own = {"temperature": 0.77}  # apart from the other tests' entries, which this model of vectors takes for the nearest
    ask(router, "How do I reset my password?", **own)
    again = ask(router, "how can I reset my password", **own)  # a paraphrase
    assert is_hit(again)
    assert float(again.headers[SIMILARITY]) == pytest.approx(1.0, abs=1e-4)
    where = f"{router.management}/api/v1/response-cache/entries/{again.headers[ENTRY]}"
    assert router.client.delete(where).json() == {"id": again.headers[ENTRY], "deleted": True}
    assert router.client.delete(where).status_code == 404
    assert not is_hit(ask(router, "How do I reset my password?", **own))


def test_e07_each_decision_has_its_own_policy_and_no_cache_by_itself(router: RunningRouter) -> None:
    for _ in range(2):
        assert HIT not in ask(router, "what is snow", model="case/off").headers
    assert [is_hit(ask(router, text, model="case/strict")) for text in ("what is snow", "what is snow please", "what is snow")] == [False, False, True]


@pytest.mark.parametrize("backend_type", ["memory", "sqlite"])
def test_e08_never_across_users(tmp_path: Path, backend_type: str) -> None:
    options: dict[str, Any] = {"backend_type": backend_type, "mode": "exact_then_semantic"}
    with caching_router(tmp_path, embeddings(), **options) as router:
        assert [is_hit(ask(router, LONG, who)) for who in ("alice", "alice")] == [False, True]
        claims: dict[str, Any] = {"headers": {"x-authz-user-id": "alice", "x-authz-tenant-id": "alice"}, "user": "alice"}
        assert [is_hit(ask(router, LONG, "bob", **claims)) for _ in range(2)] == [False, True]  # an entry of his own
        found = router.get("/api/v1/response-cache/entries").json()["data"]
        assert len(found) == 2
        assert "balance" not in str(found)
    if backend_type == "sqlite":
        with caching_router(tmp_path, embeddings(), **options) as router:
            assert [is_hit(ask(router, LONG, who)) for who in ("bob", "alice")] == [True, True]


def test_e08_without_an_identity_nothing_is_shared(tmp_path: Path) -> None:
    plugins = [{"type": "response_cache", "configuration": {"enabled": True, "mode": "exact"}}]
    public = [{"type": "response_cache", "configuration": {"enabled": True, "mode": "exact", "scope": "global"}}]
    recipes = [{"name": "public", "routing": {"decisions": [decision("shared", plugins=public)]}}]
    with backend(answers()) as one:
        whole = document({"m": one.endpoint}, {"decisions": [decision("own", plugins=plugins)]}, recipes=recipes, entrypoints=[{"model_names": ["case/public"], "recipe": "public"}])
        with started_router(tmp_path, whole) as router:
            for claims in ({}, {"user": "alice"}):
                for _ in range(2):
                    assert not is_hit(router.chat("what is my balance", headers={"x-authz-user-id": "alice"}, **claims))
            assert [is_hit(router.chat("what is rain", model="case/public")) for _ in range(2)] == [False, True]


@pytest.mark.long
def test_e10_another_embedding_model_neither_hits_nor_deletes(tmp_path: Path) -> None:
    """The same store on disk under four models, and then under the first one again."""

    def asked(script: Any, text: str = "what is the capital of spain", reembed: bool = False) -> tuple[bool, float, float]:
        with caching_router(tmp_path, script, backend_type="sqlite", mode="semantic") as router:
            if reembed:
                held = command(router, "storage", "reembed", "--dry-run")
                assert held.returncode == 0, held.stderr
                assert "response_cache" in held.stdout
                done = command(router, "storage", "reembed")
                assert done.returncode == 0, done.stderr
            found = is_hit(ask(router, text))
            return found, router.metric('headway_cache_held_entries{vectors="current"}'), router.metric('headway_cache_held_entries{vectors="foreign"}')

    first = embeddings("a")
    assert asked(first) == (False, 1, 0)
    assert asked(first) == (True, 1, 0)
    assert asked(embeddings("b")) == (False, 1, 1)  # the same size, another model or revision
    assert asked(embeddings("a", width=4)) == (False, 1, 2)  # fewer dimensions
    assert asked(embeddings("a", layer=3)) == (False, 1, 3)  # another exit
    assert asked(first) == (True, 1, 3)
    assert asked(embeddings("c"), reembed=True)[0]
