"""Tools that fit a request: added from a database, or kept."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from headway.errors import ConfigError
from headway.router.deployments.calls import Unanswered
from headway.router.observation import Observation
from headway.router.truth import Truth
from tests.router.plugins.rig import EMBEDDING, Rig, chat, run
from tests.router.scripted_calls import ScriptedCalls

TOPICS = ["weather", "stock", "mail", "math"]


def tool(name: str, description: str = "") -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "description": description, "parameters": {"type": "object", "properties": {}}}}


def vectors(given: Any) -> list[float]:
    return [float(given.lower().count(topic)) + 1e-3 for topic in TOPICS]


def database(tmp_path: Path, entries: Any = None) -> str:
    usual = [{"tool": tool(f"get_{topic}"), "description": f"everything about {topic}", "category": topic, "tags": [topic]} for topic in reversed(TOPICS)]
    path = tmp_path / "tools.json"
    path.write_text(json.dumps(usual if entries is None else entries))
    return str(path)


def names(tmp_path: Path, text: str, tools: Any = None, settings: Any = EMBEDDING, models: Any = None, domain: str | None = None, **configuration: Any) -> list[str]:
    async def work() -> list[str]:
        rig = Rig(tmp_path, ("tool_selection", {"enabled": True, **configuration}), settings=settings, models=models or ScriptedCalls(vectors=vectors))
        if domain is not None:
            rig.observe = lambda view, deadline: _observed(domain)  # type: ignore[method-assign]
        await rig.ask(chat(text, **({"tools": tools} if tools else {})))
        return [each["function"]["name"] for each in rig.sent[0].get("tools", [])]

    return run(work)


async def _observed(domain: str) -> Any:
    from headway.router.observation import Observations

    return Observations([Observation("domain", domain, Truth.TRUE, 0.9)])


@pytest.mark.parametrize("settings", [EMBEDDING, {"model_catalog": {}}])
def test_adding_by_likeness_or_by_words(tmp_path: Path, settings: Any) -> None:
    path = database(tmp_path)
    assert names(tmp_path, "what is the weather", settings=settings, tools_db_path=path, top_k=2) == ["get_weather"]
    assert names(tmp_path, "mail me the stock news", settings=settings, tools_db_path=path, top_k=2, similarity_threshold=0.1) == ["get_mail", "get_stock"]
    assert names(tmp_path, "hello", settings=settings, tools_db_path=path, similarity_threshold=0.9) == []


def test_a_tool_that_is_there_is_not_added_again(tmp_path: Path) -> None:
    mine = [tool("get_weather", "mine"), tool("other")]
    assert names(tmp_path, "weather and mail", mine, tools_db_path=database(tmp_path), top_k=3) == ["get_weather", "other", "get_mail"]


def test_the_shared_settings_hold_where_the_plugin_says_nothing(tmp_path: Path) -> None:
    settings = {**EMBEDDING, "integrations": {"tools": {"enabled": True, "tools_db_path": database(tmp_path), "top_k": 1}}}
    assert names(tmp_path, "weather stock mail", settings=settings) == ["get_mail"]


def test_filtering_keeps_what_fits(tmp_path: Path) -> None:
    mine = [tool("a", "about weather"), tool("b", "about stock"), tool("c", "about mail")]
    assert names(tmp_path, "weather today", mine, mode="filter", relevance_threshold=0.5) == ["a"]
    assert names(tmp_path, "weather today", mine, mode="filter", relevance_threshold=0.5, preserve_count=2) == ["a", "b"]
    assert names(tmp_path, "math", mine, mode="filter", relevance_threshold=0.99) == []
    assert names(tmp_path, "math", mine, mode="filter", relevance_threshold=0.99, fallback_to_empty=False) == ["a", "b", "c"]


def test_a_model_that_does_not_answer(tmp_path: Path) -> None:
    away = ScriptedCalls(vectors=lambda _: Unanswered("timeout"))
    mine = [tool("a", "about weather")]
    assert names(tmp_path, "weather", mine, models=away, mode="filter", fallback_to_empty=False) == ["a"]
    assert names(tmp_path, "weather", mine, models=away, mode="filter") == []
    assert names(tmp_path, "weather", models=away, tools_db_path=database(tmp_path)) == []


def test_advanced_filtering(tmp_path: Path) -> None:
    path = database(tmp_path)
    base = {"enabled": True, "min_combined_score": 0.0}
    assert names(tmp_path, "weather", tools_db_path=path, advanced_filtering={**base, "block_tools": ["get_weather"]}, top_k=1) != ["get_weather"]
    assert names(tmp_path, "weather", tools_db_path=path, advanced_filtering={**base, "allow_tools": ["get_mail"]}, top_k=4) == ["get_mail"]
    assert names(tmp_path, "weather", tools_db_path=path, advanced_filtering={**base, "min_lexical_overlap": 1}, top_k=4) == ["get_weather"]
    found = names(tmp_path, "weather", tools_db_path=path, advanced_filtering={**base, "use_category_filter": True}, top_k=4, domain="stock")
    assert found == ["get_stock"]


@pytest.mark.parametrize(
    ("entries", "says"), [({}, "must be a list"), ([{"tool": {}}], "entry 0"), ([{"tool": tool("a")}] * 2, "twice"), (None, "cannot be read")]
)
def test_databases_that_are_wrong(tmp_path: Path, entries: Any, says: str) -> None:
    path = str(tmp_path / "none.json") if entries is None else database(tmp_path, entries)
    with pytest.raises(ConfigError, match=says):
        names(tmp_path, "x", tools_db_path=path)


def test_adding_without_a_database_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no database"):
        names(tmp_path, "x")


def test_the_shared_database_is_open_only_when_it_is_enabled(tmp_path: Path) -> None:
    settings = {**EMBEDDING, "integrations": {"tools": {"tools_db_path": database(tmp_path)}}}
    with pytest.raises(ConfigError, match="enabled: true"):
        names(tmp_path, "weather", settings=settings)


def test_the_strategy_says_what_ranks(tmp_path: Path) -> None:
    """By likeness the first fits (1.0 and 0.5), by shared words the second (1/3 and 2/3)."""
    mine = [tool("a", "about weather"), tool("b", "the words rain tomorrow")]
    by_words = {"weights": {"embed": 0, "lexical": 1, "tag": 0, "name": 0}}
    for strategy, enabled, kept in (("semantic", True, "a"), ("weighted", False, "b"), (None, True, "b"), (None, False, "a")):
        filtering = {**by_words, "enabled": enabled}
        found = names(tmp_path, "weather rain tomorrow", mine, mode="filter", relevance_threshold=0.6, strategy=strategy, advanced_filtering=filtering)
        assert found == [kept], (strategy, enabled)


@pytest.mark.parametrize(
    ("settings", "configuration", "strategy"),
    [(EMBEDDING, {}, "semantic"), ({"model_catalog": {}}, {}, "lexical"), (EMBEDDING, {"strategy": "weighted"}, "weighted")],
)
def test_how_tools_were_found_is_counted_and_told_to_who_may_debug(tmp_path: Path, settings: Any, configuration: Any, strategy: str) -> None:
    async def work() -> None:
        plugin = ("tool_selection", {"enabled": True, "tools_db_path": database(tmp_path), **configuration})
        rig = Rig(tmp_path, plugin, settings=settings, models=ScriptedCalls(vectors=vectors))
        told = (await rig.ask("what is the weather", debug=True)).context.response_headers
        assert told["x-vsr-tools-strategy"] == strategy
        assert 0 < float(told["x-vsr-tools-confidence"]) <= 1.0001
        assert float(told["x-vsr-tools-latency-ms"]) >= 0
        quiet = (await rig.ask("what is the weather")).context.response_headers
        assert not [name for name in quiet if name.startswith("x-vsr-tools")]
        assert rig.services.metrics.value("vsr_tools_retrieval_duration_seconds", strategy) == 2

    run(work)
