"""Whatever a body holds, text signals say what they see in it; none breaks."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from headway.router.truth import Truth
from tests.router.routed import recipe, route

WORDS = ["urgent", "C++", "发票", "password reset"]
RULES: dict[str, list[dict[str, Any]]] = {
    "keywords": [
        {"name": "exact", "operator": "OR", "keywords": WORDS},
        {"name": "cased", "operator": "AND", "keywords": WORDS, "case_sensitive": True, "include_history": True},
        {"name": "fuzzy", "operator": "OR", "keywords": WORDS, "fuzzy_match": True},
        {"name": "bm25", "operator": "NOR", "keywords": WORDS, "method": "bm25"},
        {"name": "ngram", "operator": "OR", "keywords": WORDS, "method": "ngram"},
    ],
    "language": [{"name": "en"}],
    "context": [{"name": "short", "max_tokens": "1K"}],
    "structure": [
        {"name": "marks", "feature": {"type": "density", "source": {"type": "regex", "pattern": "[?？]"}}, "predicate": {"gt": 0.1}},
        {"name": "words", "feature": {"type": "count", "source": {"type": "keyword_set", "keywords": WORDS}}, "predicate": {"gt": 1}},
        {"name": "flow", "feature": {"type": "sequence", "source": {"type": "sequence", "sequences": [WORDS]}}},
        {"name": "bytes", "feature": {"type": "count", "source": {"type": "text_bytes"}}, "predicate": {"gt": 1}},
    ],
    "conversation": [
        {"name": source, "feature": {"type": "exists", "source": {"type": source}}}
        for source in ("message", "tool_definition", "assistant_tool_call", "assistant_tool_cycle", "active_tool_loop", "image_content")
    ],
    "events": [{"name": "event", "event_types": WORDS, "severities": ["high"], "temporal": True}],
    "metadata": [{"name": "meta", "key": "k", "predicate": {"equals": "v"}}],
    "input_modality": [{"name": kind, "modality": kind} for kind in ("text", "image", "audio", "video")],
    "role_bindings": [{"name": "role", "role": "r", "subjects": [{"kind": "User", "name": "u"}]}],
}
TYPES = {"keywords": "keyword", "events": "event", "role_bindings": "authz"}
LEAVES = [{"type": TYPES.get(collection, collection), "name": rule["name"]} for collection, rules in RULES.items() for rule in rules]
RECIPE = recipe({"signals": RULES, "decisions": [{"name": "any", "rules": {"operator": "OR", "conditions": LEAVES}}]})

texts = st.text(st.characters(codec=None), max_size=30) | st.sampled_from([*WORDS, "e\u0301", "\ud800", "a\udc00b", "\x00", "?" * 50])
json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "text", "image_url", "url", "id"]) | texts, inner, max_size=3),
    max_leaves=6,
)
parts = st.fixed_dictionaries({"type": st.sampled_from(["text", "image_url", "input_audio", "video_url"]) | json}, optional={"text": json, "image_url": json})
messages = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "system", "tool", "developer"]) | json, "content": texts | st.lists(parts | json, max_size=3) | json},
    optional={"tool_calls": json},
)
bodies = st.fixed_dictionaries({"messages": st.lists(messages | json, max_size=4) | json}, optional={"tools": json, "metadata": json})


@settings(max_examples=150, deadline=None)
@example({"messages": [{"role": "user", "content": "half \ud800 urgent"}]})
@given(bodies)
def test_no_body_breaks_a_text_signal(body: dict[str, Any]) -> None:
    routed = route(RECIPE, body)
    assert [each.reason for each in routed.observations if each.reason is not None] == []
    assert {each.truth for each in routed.observations} <= {Truth.TRUE, Truth.FALSE}
    assert len(routed.observations) == len(LEAVES) + 1  # a role binding answers to its own name too
