"""The last text that can serve wins; a text that cannot changes nothing and says why."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from headway.errors import ConfigError
from headway.router.generation import reload
from headway.router.generation.generations import Generations
from headway.router.generation.reload import Applied, Reloader
from headway.router.metrics.registry import RouterMetrics


class TextDocument:
    """Stands for a document: what it means is its text."""

    def __init__(self, text: str) -> None:
        self.text = text


def load(text: str, environment: Mapping[str, str]) -> Any:
    if text.startswith("invalid"):
        raise ConfigError(f"no document: {text}", reason="config_rejected")
    return TextDocument(text)


class Closing:
    async def close(self) -> None:
        pass


class Lifecycle:
    """Preparing "slow ..." waits for `gate`; preparing "failing ..." fails; "broken ..." is a defect."""

    def __init__(self) -> None:
        self.gate = asyncio.Event()
        self.prepared: list[str] = []
        self.activated_texts: list[str] = []

    async def prepare(self, text: str, document: Any, number: int) -> Any:
        self.prepared.append(document.text)
        if document.text.startswith("slow"):
            await self.gate.wait()
        if document.text.startswith("failing"):
            raise ConfigError(f"cannot load: {document.text}")
        if document.text.startswith("broken"):
            raise ZeroDivisionError("secret detail")
        return SimpleNamespace(number=number, document=document, config_hash=f"hash of {text}", upstreams=Closing(), deployments=Closing())

    def activated(self, generation: Any) -> tuple[str, ...]:
        self.activated_texts.append(generation.document.text)
        return ()


@pytest.fixture(autouse=True)
def _hash_of_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reload, "document_hash", lambda document: f"hash of {document.text}")


class Setup:
    def __init__(self) -> None:
        self.generations, self.metrics, self.lifecycle = Generations(), RouterMetrics(), Lifecycle()
        self.reloader = Reloader(self.generations, self.metrics, {}, self.lifecycle, load)

    @property
    def serving(self) -> str:
        return self.generations.current.document.text  # type: ignore[attr-defined]

    async def settled(self) -> None:
        for _ in range(50):
            await asyncio.sleep(0.001)


def test_a_valid_text_serves_and_counts() -> None:
    async def scenario() -> None:
        setup = Setup()
        assert await setup.reloader.apply("one") == Applied("active", 1)
        assert (setup.serving, setup.reloader.activation.state) == ("one", "active")
        assert (await setup.reloader.apply("one")).outcome == "unchanged"
        assert (await setup.reloader.apply("one", again=True)) == Applied("active", 2)
        assert setup.metrics.value("vsr_config_generation") == 2
        assert setup.metrics.value("vsr_config_reloads", "active") == 2
        assert setup.metrics.value("vsr_config_reloads", "unchanged") == 1

    asyncio.run(scenario())


@pytest.mark.parametrize(("bad", "told"), [("invalid", "no document: invalid"), ("failing", "cannot load: failing"), ("broken", "ZeroDivisionError")])
def test_a_bad_text_keeps_what_serves_and_shows_the_error(bad: str, told: str) -> None:
    async def scenario() -> None:
        setup = Setup()
        await setup.reloader.apply("one")
        applied = await setup.reloader.apply(bad)
        assert applied.outcome == "failed"
        assert applied.error is not None
        assert told in applied.error.message
        assert "secret detail" not in applied.error.message
        activation = setup.reloader.activation
        assert (activation.state, activation.generation, setup.serving) == ("failed", 1, "one")
        assert told in activation.error
        assert setup.metrics.value("vsr_config_last_reload_successful") == 0
        await setup.reloader.apply("two")
        assert (setup.reloader.activation.state, setup.reloader.activation.error, setup.serving) == ("active", "", "two")
        assert setup.metrics.value("vsr_config_last_reload_successful") == 1

    asyncio.run(scenario())


def test_of_texts_that_wait_the_last_valid_one_is_prepared_and_the_rest_superseded() -> None:
    async def scenario() -> None:
        setup = Setup()
        first = asyncio.create_task(setup.reloader.apply("slow"))
        await setup.settled()
        rest = [asyncio.create_task(setup.reloader.apply(text)) for text in ("two", "three", "invalid")]
        await setup.settled()
        setup.lifecycle.gate.set()
        outcomes = [(await task).outcome for task in (first, *rest)]
        assert outcomes == ["active", "superseded", "active", "failed"]
        assert setup.serving == "three"
        assert setup.lifecycle.prepared == ["slow", "three"]
        assert setup.reloader.activation.state == "failed"  # the newest news is that "invalid" was refused
        assert setup.reloader.activation.generation == 2

    asyncio.run(scenario())


def test_when_the_last_cannot_be_prepared_the_one_before_it_has_its_turn() -> None:
    async def scenario() -> None:
        setup = Setup()
        first = asyncio.create_task(setup.reloader.apply("slow"))
        await setup.settled()
        rest = [asyncio.create_task(setup.reloader.apply(text)) for text in ("two", "failing")]
        await setup.settled()
        setup.lifecycle.gate.set()
        assert [(await task).outcome for task in (first, *rest)] == ["active", "active", "failed"]
        assert setup.serving == "two"
        assert setup.lifecycle.prepared == ["slow", "failing", "two"]

    asyncio.run(scenario())
