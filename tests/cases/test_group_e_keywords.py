"""E01: where keywords begin and end, through a real router: the backend that answers, and the span in the preview's trace."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.cases.router_case import any_of, decision, document
from tests.e2e.router_process import RunningRouter, backend, started_router
from tests.router.signals.keyword.boundary_rows import KEYWORDS
from tests.router.upstream.scripted_backend import answers


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRouter]:
    """A recipe for each row, so that no keyword is helped by another."""
    with backend(answers()) as one:
        recipes = [
            {
                "name": f"row-{at}",
                "routing": {
                    "signals": {"keywords": [{"name": "word", "operator": "OR", "keywords": [keyword]}]},
                    "decisions": [decision("hit", any_of({"type": "keyword", "name": "word"}))],
                },
            }
            for at, (keyword, _, _) in enumerate(KEYWORDS)
        ]
        names = [{"model_names": [f"case/{at}"], "recipe": f"row-{at}"} for at in range(len(KEYWORDS))]
        whole = document({"other": one.endpoint, "m": one.endpoint}, {}, recipes=recipes, entrypoints=names)
        with started_router(tmp_path_factory.mktemp("keywords"), whole) as found:
            yield found


@pytest.mark.parametrize("at", range(len(KEYWORDS)), ids=[f"{keyword}-{text}" for keyword, text, _ in KEYWORDS])
def test_e01_boundaries(router: RunningRouter, at: int) -> None:
    keyword, text, span = KEYWORDS[at]
    answer = router.chat(text, model=f"case/{at}")
    assert answer.headers["x-vsr-selected-model"] == ("m" if span else "other")
    assert ("x-vsr-selected-decision" in answer.headers) == bool(span)
    (shown,) = router.preview(text, trace=True, model=f"case/{at}").json()["eval_trace"]
    (leaf,) = shown["root_trace"]["children"]
    assert leaf["matched"] == bool(span)
    if span:
        (found,) = leaf["evidence"]["keywords"]
        assert (found["keyword"], text[found["start"] : found["end"]]) == (keyword, span)
