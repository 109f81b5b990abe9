"""Extraction: only what is used, all of a stage together, one signal's trouble never another's."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from headway.router.observation import Observation
from headway.router.request.deadline import Deadline
from headway.router.request.view import RequestView
from headway.router.signals import extraction
from headway.router.signals.extraction import SignalExtraction, signal_deadline
from headway.router.signals.kind import Recipe, SignalKind
from headway.router.signals.table import KIND_OF_TYPE, SIGNAL_KINDS
from headway.router.signals.usage import used_rules
from headway.router.truth import Truth
from tests.router.routed import NoStages, recipe, route

VIEW = RequestView({"messages": [{"role": "user", "content": "hello"}]})
DOMAINS = {"signals": {"domains": [{"name": "law"}, {"name": "math"}, {"name": "unused"}]}}
USES = {"decisions": [{"name": "d", "rules": {"operator": "OR", "conditions": [{"type": "domain", "name": "law"}, {"type": "domain", "name": "math"}]}}]}


@dataclass
class Log:
    """Stages that note who joins and leaves."""

    events: list[str] = field(default_factory=list)
    deadlines: list[Deadline] = field(default_factory=list)

    def open(self, deadline: Deadline) -> Log:
        self.deadlines.append(deadline)
        self.events.append("open")
        return self

    def join(self) -> Any:
        self.events.append("join")
        log = self

        class Participant:
            def leave(self) -> None:
                log.events.append("leave")

        return Participant()


Ask = Callable[[Sequence[Any], RequestView, Any], Awaitable[Sequence[Observation]]]


def kind(ask: Ask, type: str = "domain", collection: str = "domains", **more: Any) -> SignalKind:
    @dataclass
    class Signal:
        rules: Sequence[Any]

        async def observe(self, view: RequestView, calls: Any) -> Sequence[Observation]:
            return await ask(self.rules, view, calls)

        def deployments(self) -> frozenset[str]:
            return frozenset((f"model-{type}",))

    return SignalKind(type, collection, collection, lambda rules, recipe: [Signal(rules)], **more)


async def found_all(rules: Sequence[Any], view: RequestView, calls: Any) -> Sequence[Observation]:
    return [Observation("domain", rule.name, Truth.TRUE, 0.9) for rule in rules]


def observe(kinds: Sequence[SignalKind], stages: Any, routing: dict[str, Any] | None = None, seconds: float = 10) -> dict[str, Observation]:
    built = recipe(routing or {**DOMAINS, **USES})

    async def run() -> dict[str, Observation]:
        return {each.key: each for each in await SignalExtraction(built, stages, kinds).observe(VIEW, Deadline.after(seconds, True))}

    return asyncio.run(run())


def test_only_rules_that_something_uses() -> None:
    log = Log()
    assert set(observe([kind(found_all)], log)) == {"domain:law", "domain:math"}
    assert log.events == ["open", "join", "leave"]
    assert not observe([kind(found_all)], NoStages(), DOMAINS)


def used(routing: dict[str, Any]) -> set[tuple[str, str]]:
    return {(found.type, rule.name) for found, rules in used_rules(recipe(routing), SIGNAL_KINDS) for rule in rules}


def test_what_counts_as_use() -> None:
    keywords = {"keywords": [{"name": name, "operator": "OR", "keywords": ["x"]} for name in "abcdefg"]}
    leaf = {"type": "keyword", "name": "a"}
    nested = {"operator": "AND", "conditions": [{"operator": "NOT", "conditions": [{"type": "keyword", "name": "b"}]}]}
    score = {"name": "s", "inputs": [{"type": "keyword", "name": "c", "weight": 1}]}
    hard = {"candidates": ["prove it"]}
    composer, other = ({"operator": "AND", "conditions": [{"type": "keyword", "name": name}]} for name in "de")
    found = used(
        {
            "signals": {**keywords, "complexity": [{"name": "level", "hard": hard, "easy": hard, "composer": composer}, {"name": "other", "hard": hard, "easy": hard, "composer": other}]},
            "projections": {"scores": [score]},
            "decisions": [
                {"name": "one", "rules": leaf},
                {"name": "two", "rules": nested},
                {"name": "three", "rules": {"type": "complexity", "name": "level:hard"}},
                {"name": "all"},
            ],
        }
    )
    assert {name for type, name in found if type == "keyword"} == {"a", "b", "c", "d"}
    assert {name for type, name in found if type == "complexity"} == {"level"}
    partition = {"name": "p", "semantics": "exclusive", "members": ["law", "math"], "default": "law"}
    assert used({**DOMAINS, "projections": {"partitions": [partition]}}) == {("domain", "law"), ("domain", "math")}
    questions = [{"name": "topic", "question": {"type": "choice", "instructions": "?", "choices": [{"key": "a"}, {"key": "b"}]}}]
    reads = {"name": "s", "inputs": [{"type": "systemone", "name": "topic:a", "weight": 1, "value_source": "raw"}]}
    assert used({"signals": {"systemone": questions}, "projections": {"scores": [reads]}}) == {("systemone", "topic")}


def test_every_signal_joins_before_the_first_one_asks() -> None:
    log = Log()

    def asking(name: str, wait: asyncio.Event | None = None) -> Ask:
        async def ask(rules: Sequence[Any], view: RequestView, calls: Any) -> Sequence[Observation]:
            log.events.append(name)
            await asyncio.sleep(0)
            return [Observation(name, rule.name, Truth.TRUE) for rule in rules]

        return ask

    routing = {
        "signals": {"domains": [{"name": "law"}], "modality": [{"name": "AR"}]},
        "decisions": [{"name": "d", "rules": {"operator": "OR", "conditions": [{"type": "domain", "name": "law"}, {"type": "modality", "name": "AR"}]}}],
    }
    found = observe([kind(asking("domain")), kind(asking("modality"), "modality", "modality")], log, routing)
    assert log.events == ["open", "join", "join", "domain", "modality", "leave", "leave"]  # both run before either ends
    assert set(found) == {"domain:law", "modality:AR"}


async def raises(rules: Sequence[Any], view: RequestView, calls: Any) -> Sequence[Observation]:
    raise RuntimeError("a defect with the text of a request in it")


async def sleeps(rules: Sequence[Any], view: RequestView, calls: Any) -> Sequence[Observation]:
    await asyncio.sleep(60)
    return []


@pytest.mark.timeout(30)
@pytest.mark.parametrize(("ask", "reason"), [(raises, "domain_evaluation_failed"), (sleeps, "domain_timeout")])
def test_a_signal_that_fails_or_hangs_costs_only_its_own_rules(ask: Ask, reason: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(extraction, "_GRACE", 0.01)
    routing = {
        "signals": {**DOMAINS["signals"], "keywords": [{"name": "k", "operator": "OR", "keywords": ["hello"]}]},
        "decisions": [*USES["decisions"], {"name": "k", "rules": {"type": "keyword", "name": "k"}}],
    }
    log = Log()
    found = observe([kind(ask), KIND_OF_TYPE["keyword"]], log, routing, seconds=0.02)
    assert {key: (each.truth, each.reason) for key, each in found.items()} == {
        "keyword:k": (Truth.TRUE, None),
        "domain:law": (Truth.UNKNOWN, reason),
        "domain:math": (Truth.UNKNOWN, reason),
    }
    assert log.events == ["open", "join", "leave"]
    assert "text of a request" not in caplog.text


def test_a_kind_says_itself_what_unanswered_rules_count_as() -> None:
    closed = kind(raises, unanswered=lambda rule, reason: [Observation("domain", rule.name, Truth.TRUE, reason=reason)])
    found = observe([closed], Log())
    assert {key: (each.truth, each.reason) for key, each in found.items()} == dict.fromkeys(("domain:law", "domain:math"), (Truth.TRUE, "domain_evaluation_failed"))


@pytest.mark.parametrize("type", ["jailbreak", "pii"])
@pytest.mark.parametrize(("policy", "wanted"), [(None, Truth.TRUE), ("match", Truth.TRUE), ("no_match", Truth.FALSE)])
def test_guards_fail_closed_unless_their_rule_says_otherwise(type: str, policy: str | None, wanted: Truth) -> None:
    rule = {"name": "g", "threshold": 0.5} | ({"on_unknown": policy} if policy else {})
    routing = {"signals": {type: [rule]}, "decisions": [{"name": "d", "rules": {"type": type, "name": "g"}}]}
    real = KIND_OF_TYPE[type]
    broken = kind(raises, type, type, unanswered=real.unanswered)
    found = observe([broken], Log(), routing)[f"{type}:g"]
    assert (found.truth, found.reason) == (wanted, f"{type}_evaluation_failed")


def test_deployments_are_those_of_used_signals() -> None:
    built = SignalExtraction(recipe({**DOMAINS, **USES}), Log(), [kind(found_all), kind(found_all, "modality", "modality")])
    assert built.deployments() == {"model-domain"}
    assert SignalExtraction(recipe({}), NoStages()).deployments() == frozenset()


@pytest.mark.parametrize(
    ("left", "visible", "limit", "wanted"),
    [
        (20.0, True, None, 18.0),  # a tenth before the end
        (5.0, True, None, 4.0),  # at least a second before it
        (1.0, True, None, 0.5),  # but half of the time remains
        (300.0, False, None, 45.0),
        (10.0, False, None, 10.0),
        (20.0, True, 2.0, 2.0),
        (20.0, False, 60.0, 20.0),
    ],
)
def test_the_deadline_of_signals(left: float, visible: bool, limit: float | None, wanted: float) -> None:
    now = time.monotonic()
    assert signal_deadline(Deadline(now + left, visible), limit).at - now == pytest.approx(wanted, abs=0.25)


def test_the_limit_comes_from_the_configuration() -> None:
    log = Log()
    built = recipe({**DOMAINS, **USES}, **{"global": {"model_catalog": {"signal_timeout_ms": 1500}}})
    asyncio.run(SignalExtraction(built, log, [kind(found_all)]).observe(VIEW, Deadline.after(100)))
    assert log.deadlines[0].at - time.monotonic() == pytest.approx(1.5, abs=0.3)


def test_types_and_collections_are_those_of_the_document() -> None:
    """Each kind reads a collection that a document has, and conditions may name it."""
    from headway.router.config.document.rule_tree import LEAF_TYPES
    from headway.router.config.document.signals import Signals

    assert {each.type for each in SIGNAL_KINDS if each.in_conditions} == set(LEAF_TYPES) - {"projection"}
    assert {each.collection for each in SIGNAL_KINDS} == set(Signals.model_fields) - {"hallucination"}
    assert len({each.observation_key for each in SIGNAL_KINDS}) == len(SIGNAL_KINDS)


def test_a_recipe_sees_only_its_own_signals() -> None:
    built: Recipe = recipe({"signals": {"keywords": [{"name": "k", "operator": "OR", "keywords": ["hello"]}]}, "decisions": [{"name": "d", "rules": {"type": "keyword", "name": "k"}}]})
    assert route(built, "hello").decision.chosen == "d"
    assert route(built, "bye").decision.chosen is None


def test_a_text_signal_that_fails_costs_only_its_own_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    from headway.router.signals.context import ContextBands

    def broken(signal: ContextBands, view: RequestView) -> Sequence[Observation]:
        raise RuntimeError("defect")

    monkeypatch.setattr(ContextBands, "observe", broken)
    built = recipe(
        {
            "signals": {"keywords": [{"name": "k", "operator": "OR", "keywords": ["hello"]}], "context": [{"name": "short", "max_tokens": "1K"}]},
            "decisions": [{"name": "k", "rules": {"type": "keyword", "name": "k"}}, {"name": "c", "rules": {"type": "context", "name": "short"}}],
        }
    )
    routed = route(built, "hello")
    assert routed.decision.chosen == "k"
    assert (routed["context:short"].truth, routed["context:short"].reason) == (Truth.UNKNOWN, "context_evaluation_failed")


@pytest.mark.parametrize(("length", "inline"), [(100, True), (200_000, False)])
def test_long_texts_do_not_hold_up_the_event_loop(length: int, inline: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    from headway.router.signals.context import ContextBands

    threads: list[int] = []
    real = ContextBands.observe

    def noted(signal: ContextBands, view: RequestView) -> Sequence[Observation]:
        threads.append(threading.get_ident())
        return real(signal, view)

    monkeypatch.setattr(ContextBands, "observe", noted)
    built = recipe({"signals": {"context": [{"name": "c", "max_tokens": "1M"}]}, "decisions": [{"name": "c", "rules": {"type": "context", "name": "c"}}]})
    assert route(built, "x" * length).decision.chosen == "c"
    assert (threads == [threading.get_ident()]) is inline
