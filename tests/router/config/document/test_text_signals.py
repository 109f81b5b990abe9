"""What text signals and projections may say: each refused form by its kind of error."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from headway.router.config.document.node import Node
from headway.router.config.document.numeric_range import NumericPredicate
from headway.router.config.document.projections import ProjectionMapping, ProjectionPartition, ProjectionScoreInput
from headway.router.config.document.text_signals import (
    ContextRule,
    ConversationRule,
    EventRule,
    KeywordRule,
    MetadataRule,
    RoleBinding,
    StructureRule,
)

WORDS = {"name": "k", "operator": "OR", "keywords": ["x"]}
COUNT = {"gte": 1}


def structure(type: str, source: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"name": "s", "feature": {"type": type, "source": source}, **more}


def score(**more: Any) -> dict[str, Any]:
    return {"type": "keyword", "name": "k", "weight": 1, **more}


PATTERN = {"type": "regex", "pattern": "x"}
REFUSED: list[tuple[type[Node], dict[str, Any], str]] = [
    (KeywordRule, {**WORDS, "operator": "XOR"}, "literal_error"),
    (KeywordRule, {**WORDS, "keywords": []}, "too_short"),
    (KeywordRule, {**WORDS, "keywords": [" "]}, "keyword_blank"),
    (KeywordRule, {**WORDS, "keywords": [""]}, "string_too_short"),
    (KeywordRule, {**WORDS, "method": "exact"}, "literal_error"),
    (KeywordRule, {**WORDS, "method": "bm25", "fuzzy_match": True}, "keyword_fuzzy"),
    (KeywordRule, {**WORDS, "ngram_threshold": 1.5}, "less_than_equal"),
    (KeywordRule, {**WORDS, "name": " k"}, "untrimmed"),
    (KeywordRule, {**WORDS, "name": ""}, "string_too_short"),
    (ContextRule, {"name": "c"}, "context_open"),
    (ContextRule, {"name": "c", "min_tokens": "2K", "max_tokens": "1999"}, "context_empty"),
    (ContextRule, {"name": "c", "min_tokens": "many"}, "token_count"),
    (ContextRule, {"name": "c", "min_tokens": True}, "string_type"),
    (StructureRule, structure("exists", PATTERN, predicate=COUNT), "predicate_unwanted"),
    (StructureRule, structure("count", PATTERN), "predicate_missing"),
    (StructureRule, structure("density", PATTERN), "predicate_missing"),
    (StructureRule, structure("density", {"type": "text_bytes"}, predicate=COUNT), "structure_bytes"),
    (StructureRule, structure("sequence", PATTERN), "structure_sequence"),
    (StructureRule, structure("count", {"type": "sequence", "sequences": [["a"]]}, predicate=COUNT), "structure_sequence"),
    (StructureRule, structure("count", {"type": "regex"}, predicate=COUNT), "structure_source"),
    (StructureRule, structure("count", {**PATTERN, "keywords": ["x"]}, predicate=COUNT), "structure_source"),
    (StructureRule, structure("count", {"type": "regex", "pattern": "("}, predicate=COUNT), "pattern"),
    (StructureRule, structure("count", {"type": "regex", "pattern": r"(a)\1"}, predicate=COUNT), "pattern"),
    (ConversationRule, structure("count", {"type": "message"}), "predicate_missing"),
    (ConversationRule, structure("exists", {"type": "tool_definition", "role": "user"}), "conversation_role"),
    (ConversationRule, structure("exists", {"type": "message", "role": "robot"}), "literal_error"),
    (EventRule, {"name": "e"}, "event_empty"),
    (EventRule, {"name": "e", "severities": ["fatal"]}, "literal_error"),
    (MetadataRule, {"name": "m", "key": "k", "predicate": {}}, "metadata_predicate"),
    (MetadataRule, {"name": "m", "key": "k", "predicate": {"equals": "a", "exists": True}}, "metadata_predicate"),
    (MetadataRule, {"name": "m", "key": "k", "predicate": {"in": []}}, "too_short"),
    (RoleBinding, {"name": "r", "role": "x", "subjects": []}, "too_short"),
    (RoleBinding, {"name": "r", "role": "x", "subjects": [{"kind": "Robot", "name": "x"}]}, "literal_error"),
    (ProjectionPartition, {"name": "p", "semantics": "exclusive", "members": ["a"], "default": "b"}, "partition_default"),
    (ProjectionPartition, {"name": "p", "semantics": "exclusive", "members": ["a"], "default": "a", "temperature": 1.0}, "partition_temperature"),
    (ProjectionScoreInput, score(type="classifier"), "literal_error"),
    (ProjectionScoreInput, {"type": "keyword", "weight": 1}, "score_input"),
    (ProjectionScoreInput, score(kb="x"), "score_input"),
    (ProjectionScoreInput, score(type="kb_metric"), "score_metric"),
    (ProjectionMapping, {"name": "m", "source": "s", "method": "multi_emit", "outputs": [{"name": "a"}]}, "mapping_single"),
    (ProjectionMapping, {"name": "m", "source": "s", "outputs": [{"name": "a", "gt": 1, "gte": 1}]}, "range_twice"),
    (ProjectionMapping, {"name": "m", "source": "s", "outputs": [{"name": "a", "gt": 1, "lt": 1}]}, "range_empty"),
    (ProjectionMapping, {"name": "m", "source": "s", "outputs": []}, "too_short"),
]


@pytest.mark.parametrize(("model", "data", "kind"), REFUSED)
def test_refused(model: type[Node], data: dict[str, Any], kind: str) -> None:
    with pytest.raises(ValidationError) as caught:
        model.model_validate(data)
    assert [each["type"] for each in caught.value.errors()] == [kind]


ends = st.none() | st.sampled_from([-1.0, 0.0, 0.5, 1.0])


@settings(deadline=None)
@given(ends, ends, ends, ends, st.lists(st.sampled_from([-2.0, -1.0, -0.5, 0.0, 0.25, 0.5, 0.75, 1.0, 2.0])))
def test_predicates_are_ranges(gt: float | None, gte: float | None, lt: float | None, lte: float | None, values: list[float]) -> None:
    given_ends = {name: end for name, end in (("gt", gt), ("gte", gte), ("lt", lt), ("lte", lte)) if end is not None}

    def inside(value: float) -> bool:
        compare = {"gt": float.__gt__, "gte": float.__ge__, "lt": float.__lt__, "lte": float.__le__}
        return all(compare[name](value, end) for name, end in given_ends.items())

    grid = [step / 8 for step in range(-24, 25)]
    try:
        predicate = NumericPredicate.model_validate(given_ends)
    except ValidationError:
        assert not given_ends or {"gt", "gte"} <= set(given_ends) or {"lt", "lte"} <= set(given_ends) or not any(map(inside, grid))
        return
    assert any(map(inside, grid))
    assert [predicate.holds(value) for value in values] == [inside(value) for value in values]
