"""What is put together, and that beginnings which requests share change no number."""

from __future__ import annotations

from collections.abc import Callable

import torch
from hypothesis import given
from hypothesis import strategies as st

from headway.artifacts.inspect import inspect
from headway.evaluation import hidden_states as states
from headway.evaluation.batches import batches
from headway.evaluation.measuring import logprobs_of
from headway.evaluation.scoring import ScoringRequest
from headway.evaluation.token_scores import Head
from headway.models.load import load_model
from tests.models.runs import tokens
from tests.models.tiny_models import TinyModel

# Most begin alike: zeros, then other tokens.
requests = st.lists(
    st.tuples(st.integers(1, 20), st.lists(st.integers(0, 2), max_size=6)).flatmap(
        lambda parts: st.builds(ScoringRequest, st.just((0,) * parts[0] + tuple(parts[1])), st.integers(1, parts[0] + len(parts[1])))
    ),
    max_size=12,
)


@given(asked=requests, most=st.integers(1, 60))
def test_batches(asked: list[ScoringRequest], most: int) -> None:
    found = list(batches(asked, most, 4))
    assert [placed.index for batch in found for placed in batch.members] == list(range(len(asked)))
    for batch in found:
        assert batch.tokens == sum(placed.new for placed in batch.members)
        assert batch.tokens <= most or len(batch.members) == 1
        whole = {placed.index: placed for placed in batch.members}
        for placed in batch.members:
            assert placed.shared % 4 == 0
            assert placed.shared < placed.request.start
            if placed.shared:
                assert whole[placed.leader].shared == 0
                assert whole[placed.leader].request.tokens[: placed.shared] == placed.request.tokens[: placed.shared]


def test_log_probabilities_are_those_of_transformers(tiny: Callable[[str], TinyModel]) -> None:
    """Choices after a common beginning, texts of their own, and one that begins as another ends."""
    model = tiny("llama")
    common = tokens(1, 40)
    asked = [
        ScoringRequest((*common, *tokens(2, 5)), 40), ScoringRequest((*common, *tokens(3, 9)), 40), ScoringRequest((*common, *tokens(4, 1)), 40),
        ScoringRequest((*common[:37], *tokens(5, 20)), 30), ScoringRequest(tuple(tokens(6, 70)), 1), ScoringRequest(tuple(tokens(7, 2)), 1),
    ]  # fmt: skip
    assert any(placed.shared for batch in batches(asked, states.STEP_TOKENS, states.BLOCK) for placed in batch.members)
    ours = load_model(inspect(str(model.folder)), torch.float32)
    found = list(logprobs_of(ours, Head(ours.head, 160), asked, lambda tokens: None))
    for request, logprobs in zip(asked, found, strict=True):
        expected = torch.log_softmax(model.logits(list(request.tokens)).double(), -1)
        targets = [float(expected[place - 1, request.tokens[place]]) for place in range(request.start, len(request.tokens))]
        assert abs(logprobs - targets).max() < 1e-4
