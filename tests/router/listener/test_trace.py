"""The trace stays within its size, is always JSON, and keeps what matters longest."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any, cast

from hypothesis import given, reject
from hypothesis import strategies as st

from headway.errors import RequestError
from headway.router.decisions.result import DecisionResult
from headway.router.listener.answer_headers import safe_headers
from headway.router.listener.front import Front, ListenerRules
from headway.router.listener.head import caller_of
from headway.router.listener.trace import MOST_BYTES, debug_headers, trace
from headway.router.observation import Observation
from headway.router.request.context import RequestContext
from headway.router.selection.result import Selection
from headway.router.truth import Truth

TRUTHS = st.sampled_from(list(Truth))
OBSERVATIONS = st.builds(
    Observation,
    kind=st.sampled_from(["keyword", "embedding", "pii"]),
    name=st.text(max_size=200),
    truth=TRUTHS,
    confidence=st.none() | st.floats(0, 1),
    reason=st.none() | st.text(max_size=40),
    evidence=st.dictionaries(st.text(max_size=10), st.text(max_size=500), max_size=3),
)


def context(observations: list[Observation], decision: str = "d") -> RequestContext:
    found = SimpleNamespace(
        generation=SimpleNamespace(number=3), recipe=None, decision=DecisionResult(decision, 0.5, matched_rules=("keyword:k",)), decision_name=decision,
        selection=Selection("m", "static", "why"), observations=observations, timings_ms={"signals": 1.23456}, attempts=["m/1: ok"],
    )  # fmt: skip
    return cast(RequestContext, found)


@given(st.lists(OBSERVATIONS, max_size=60))
def test_it_never_is_longer_than_it_may_be_and_always_readable(observations: list[Observation]) -> None:
    written = trace(context(observations))
    assert len(written.encode("ascii")) <= MOST_BYTES
    found = json.loads(written)
    assert (found["decision"], found["model"]) == ("d", "m")
    if not found.get("cut"):
        assert set(found["signals"]) == {observation.key for observation in observations}
        assert set(found["errors"]) == {observation.key for observation in observations if observation.truth is Truth.UNKNOWN}


def test_signals_that_matched_outlive_those_that_did_not() -> None:
    misses = [Observation("keyword", f"miss-{number}", Truth.FALSE, reason="x" * 30) for number in range(200)]
    found = json.loads(trace(context([*misses, Observation("keyword", "hit", Truth.TRUE)])))
    assert found["cut"] is True
    assert set(found["signals"]) == {"keyword:hit"}


def test_even_a_name_without_end_fits() -> None:
    assert json.loads(trace(context([], "n" * 10_000)))["cut"] is True


@given(st.dictionaries(st.text(max_size=20), st.text(max_size=200)))
def test_no_header_can_be_split(headers: dict[str, str]) -> None:
    for name, value in safe_headers(headers):
        assert not set(name + value) & set(b"\r\n\0")
        assert name.strip() == name != b""


@given(st.lists(st.tuples(st.binary(max_size=30), st.binary(max_size=50)), max_size=10))
def test_only_names_that_anybody_may_say_come_through(raw: list[tuple[bytes, bytes]]) -> None:
    secret: list[tuple[bytes, bytes]] = [(b"x-authz-user-id", b"admin"), (b"authorization", b"Bearer x"), (b"x-vsr-skip-processing", b"true")]
    named = [*((name.lower(), value) for name, value in raw if not name.lower().startswith(b"x-")), *secret]
    try:
        caller: Any = caller_of(named, "203.0.113.9", Front(), ListenerRules("l"))
    except RequestError:
        reject()  # control characters in a header that is read
    assert not {"authorization", "x-authz-user-id", "x-vsr-skip-processing"} & set(caller.headers)
    assert caller.identity.user is None
    assert not caller.skip


def test_what_was_found_out_about_the_request_has_headers_of_its_own() -> None:
    found = [
        Observation("domain", "law", Truth.TRUE, 0.6), Observation("domain", "health", Truth.TRUE, 0.9), Observation("domain", "math", Truth.FALSE, 0.99),
        Observation("modality", "BOTH", Truth.TRUE, 0.7), Observation("modality", "AR", Truth.FALSE), Observation("context", "long", Truth.FALSE, value=41.0),
    ]  # fmt: skip
    headers = dict(debug_headers(context(found)))
    assert headers[b"x-vsr-selected-category"] == b"health"
    assert headers[b"x-vsr-selected-modality"] == b"BOTH"
    assert headers[b"x-vsr-context-token-count"] == b"41"
    assert not [name for name in dict(debug_headers(context([]))) if name != b"x-vsr-trace"]
