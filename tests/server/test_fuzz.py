"""Whatever a body holds, the answer is a success or a clean refusal, and nothing stays behind in the engine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headway.wire.chat import ChatBody
from headway.wire.completions import CompletionBody
from headway.wire.not_built import CHAT as NOT_BUILT
from headway.wire.tokenize import DetokenizeBody, TokenizeBody
from tests.server.api import CHAT, COMPLETIONS, Api, error
from tests.server.scripted_engine import ScriptedEngine

LEAVES = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8)
JSON = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3), max_leaves=8)
LIKELY = st.sampled_from(
    [0, 1, -1, 2, 0.5, "x", "", True, False, None, [], {}, ["x"], [1], [[1]], {"1": 1.0}, [{"role": "user", "content": "x"}],
     {"include_usage": True}, {"type": "text"}, [{"role": "user", "content": [{"type": "text", "text": "x"}]}], "left", "none"]
)
BODIES = {COMPLETIONS: CompletionBody, CHAT: ChatBody, "/tokenize": TokenizeBody, "/detokenize": DetokenizeBody}
WORKS: dict[str, dict[str, Any]] = {
    COMPLETIONS: {"prompt": "x"},
    CHAT: {"messages": [{"role": "user", "content": "x"}]},
    "/tokenize": {"prompt": "x"},
    "/detokenize": {"tokens": [1]},
}


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    made = Api(ScriptedEngine(b"abc"))
    yield made
    made.close()


@pytest.mark.parametrize("path", list(BODIES))
@given(data=st.data())
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_fields(api: Api, path: str, data: st.DataObject) -> None:
    # The scripted engine finds no beams; test_beam_search asks a real one.
    names = [*(BODIES[path].model_fields.keys() - {"use_beam_search"}), *(entry.name for entry in NOT_BUILT), "unknown"]
    names.sort()
    changed = data.draw(st.dictionaries(st.sampled_from(names), LIKELY | JSON, max_size=4))
    body = WORKS[path] | changed
    response = api.post(path, body)
    if response.status_code != 200:
        assert response.status_code in (400, 404), (body, response.text)
        assert len(response.content) <= 8192
        error(response, response.status_code)
    assert not api.engine.active
