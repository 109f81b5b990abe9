"""The other APIs, as test_fuzz: whatever a body holds, the answer is a success or a clean refusal in the form of the API."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headway.wire.anthropic.body import NOT_BUILT as NOT_BUILT_MESSAGES
from headway.wire.anthropic.body import CountTokensBody, MessagesBody
from headway.wire.chat import ChatBody
from headway.wire.responses.body import NOT_BUILT as NOT_BUILT_RESPONSES
from headway.wire.responses.body import ResponsesBody
from tests.server.api import Api
from tests.server.scripted_engine import ScriptedEngine
from tests.server.test_fuzz import JSON, LIKELY

USER = [{"role": "user", "content": "x"}]
WORKS: dict[str, dict[str, Any]] = {
    "/v1/responses": {"input": "x"},
    "/v1/messages": {"max_tokens": 5, "messages": USER},
    "/v1/messages/count_tokens": {"messages": USER},
    "/v1/chat/completions/batch": {"messages": [USER]},
}
NAMES = {
    "/v1/responses": [*ResponsesBody.model_fields, *(entry.name for entry in NOT_BUILT_RESPONSES)],
    "/v1/messages": [*MessagesBody.model_fields, *(entry.name for entry in NOT_BUILT_MESSAGES)],
    "/v1/messages/count_tokens": [*CountTokensBody.model_fields],
    "/v1/chat/completions/batch": [*(ChatBody.model_fields.keys() - {"use_beam_search"})],
}
PARTS = st.sampled_from([
    {"type": "text", "text": "x"}, {"type": "input_text", "text": "x"}, {"type": "tool_use", "id": "t", "name": "f", "input": {}}, {"type": "tool_use"},
    {"type": "tool_result", "tool_use_id": "t", "content": "x"}, {"type": "tool_result", "content": 7}, {"type": "thinking"}, {"type": "refusal"},
    {"type": "image", "source": 1}, {"type": "document", "source": {"type": "text", "data": "x"}}, {"type": "search_result", "content": []}, {"type": []},
])  # fmt: skip
ITEMS = st.fixed_dictionaries(
    {},
    optional={
        "type": st.sampled_from(["message", "function_call", "function_call_output", "reasoning", "item_reference", 7]),
        "role": st.sampled_from(["user", "assistant", "system", "developer", "x", None]),
        "content": st.lists(PARTS | JSON, max_size=3) | JSON,
        "call_id": LIKELY, "name": LIKELY, "arguments": st.sampled_from(["{}", "[", "", 7]), "output": LIKELY | st.lists(PARTS, max_size=2),
    },
)  # fmt: skip
VALUES = st.lists(ITEMS, max_size=3) | LIKELY | JSON | st.fixed_dictionaries({"type": st.sampled_from(["auto", "enabled", "any", "json_schema"])}, optional={"format": JSON, "budget_tokens": JSON, "name": LIKELY})


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    made = Api(ScriptedEngine(b"abc"), enable_responses_api_store=True)
    yield made
    made.close()


@pytest.mark.parametrize("path", list(WORKS))
@given(data=st.data())
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_fields(api: Api, path: str, data: st.DataObject) -> None:
    changed = data.draw(st.dictionaries(st.sampled_from(sorted(set(NAMES[path]))), VALUES, max_size=3))
    changed.pop("background", None)  # it would outlive the loop of one call
    body = WORKS[path] | changed
    response = api.post(path, body)
    if response.status_code != 200:
        assert response.status_code in (400, 404), (body, response.text)
        assert len(response.content) <= 8192
        found = response.json()
        assert ("type" in found) == path.startswith("/v1/messages")
        assert found["error"].keys() == {"message", "type", "param", "code", "reason"}
    assert not api.engine.active
