"""By which names a model is known."""

from __future__ import annotations

import pytest

from headway.runtime.loading.model_entry import ModelEntry
from headway.runtime.served_model import ServedModel, ServedModels


@pytest.mark.parametrize(
    ("reference", "accepted"),
    [
        ("sparrow-nano", {"n", "sparrow-nano"}),
        ("acme/tiny@abc", {"n", "acme/tiny@abc", "acme/tiny", "tiny@abc", "tiny"}),
        ("/models/guard/", {"n", "/models/guard/", "guard"}),
    ],
)
def test_spellings(reference: str, accepted: set[str]) -> None:
    assert ServedModel(ModelEntry(reference), "n").accepted_names == accepted


def test_a_name_wins_over_the_spelling_of_another() -> None:
    first, second = ServedModel(ModelEntry("acme/tiny"), "first"), ServedModel(ModelEntry("acme/other"), "tiny")
    models = ServedModels([first, second])
    assert models.named("tiny") is second
    assert models.named("acme/tiny") is first
    assert models.named("absent") is None
