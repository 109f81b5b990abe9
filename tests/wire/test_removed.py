"""A request that still names a profile is told what became of it, on every surface."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from headway.errors import RequestError
from headway.wire.classify import parse_classify
from headway.wire.decision_body import read_decision_body
from headway.wire.embeddings import parse_embeddings
from headway.wire.rerank import parse_rerank

QUESTIONS = {"q": {"type": "noul", "instructions": "Is it?"}}


@pytest.mark.parametrize(
    ("read", "body"),
    [
        (parse_classify, {"input": "a"}),
        (parse_embeddings, {"input": "a"}),
        (parse_rerank, {"query": "a", "documents": ["b"]}),
        (read_decision_body, {"state": "a", "questions": QUESTIONS}),
    ],
)
def test_profile_was_removed(read: Callable[[Any], Any], body: dict[str, Any]) -> None:
    read(body)
    with pytest.raises(RequestError, match="profile was removed"):
        read({**body, "options": {"profile": "exact"}})


@pytest.mark.parametrize("read", [parse_classify, parse_embeddings, parse_rerank])
def test_beside_the_options_as_well(read: Callable[[Any], Any]) -> None:
    with pytest.raises(RequestError, match="profile was removed"):
        read({"input": "a", "query": "a", "documents": ["b"], "profile": "exact"})
