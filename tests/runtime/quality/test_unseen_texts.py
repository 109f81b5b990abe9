"""The models that are served by default, as shipped, on texts that no prompt and no setting was chosen by.

Readouts were chosen with half of the packaged texts in sight, so how they do on the packaged set flatters them somewhat.
docs/runtime.md has the numbers of the first run.
"""

from __future__ import annotations

import pytest

from headway.runtime.loading.model_entry import ModelEntry
from headway.runtime.one_model import one_model
from headway.runtime.quality.evaluation import evaluate
from headway.runtime.quality.labelled_set import labelled_in
from headway.runtime.settings import WorkerSettings
from tests.runtime.readers.trained.labelled import packaged_set, unseen_texts

pytestmark = [pytest.mark.long, pytest.mark.timeout(900)]


@pytest.mark.parametrize("model", ["sparrow-nano", "smollm2-135m-instruct"])
def test_choices_are_better_than_the_commonest_answer(model: str) -> None:
    unseen = labelled_in({**packaged_set(), "texts": unseen_texts(), "reviews": []})
    assert not {each["text"] for each in packaged_set()["texts"]} & {each.state for each in unseen}
    with one_model(ModelEntry(model), WorkerSettings(threads=1)) as one:
        found = one.device.call(lambda: evaluate(one.opened.model, unseen))
    print(model, found)
    assert found["choice"].asked == len(unseen_texts())
    assert found["choice"].beats_majority, found
