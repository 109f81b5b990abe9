"""The reverse questions agree with the forward one, for any model and card."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from headway.capacity.device_table import devices
from headway.capacity.model_table import known_models
from headway.capacity.on_device import Placement, on_device, vllm_formats
from headway.capacity.reverse import Wanted, best_match, devices_for, fits_on, models_for
from headway.capacity.tensor_split import divisors, split_obstacle

CARDS = st.sampled_from(list(devices().values()))
MODELS = st.sampled_from([model.shape for model in known_models().values()])
WANTED = st.builds(Wanted, st.sampled_from([512, 4096, 40960]), st.sampled_from([1, 4, 32]), st.sampled_from([1, 2, 8]))


@settings(max_examples=120)
@given(MODELS, CARDS, WANTED)
def test_a_match_fits_and_no_match_means_that_nothing_does(model, card, wanted) -> None:  # type: ignore[no-untyped-def]
    match = best_match(model, card, Placement(), wanted)
    tries = [Placement(form, ranks=ranks) for ranks in divisors(model.heads, wanted.most_ranks) for form in vllm_formats(card)]
    forward = [
        placement for placement in tries
        if split_obstacle(model, placement.ranks) is None
        and on_device(model, card, placement).fits(min(wanted.context, model.context_length), wanted.sequences)
    ]  # fmt: skip
    assert (match is None) == (not forward)
    if match is not None:
        assert match.placement == forward[0]
        assert match.largest_concurrency >= wanted.sequences
        assert match.largest_context >= min(wanted.context, model.context_length)
        assert match.bytes_per_device <= card.memory_bytes * match.placement.utilization


@settings(max_examples=20)
@given(WANTED)
def test_both_directions_tell_the_same_pairs(wanted: Wanted) -> None:
    cards, models = list(devices().values())[::6], [model.shape for model in known_models().values()][::4]
    there = {(match.shape.name, match.device.name) for card in cards for match in models_for(card, models, Placement(), wanted)}
    back = {(match.shape.name, match.device.name) for model in models for match in devices_for(model, cards, Placement(), wanted)}
    assert there == back


def test_known_answers() -> None:
    wanted = Wanted(4096, 1)
    small, large = (known_models()[name].shape for name in ("llama-3.1-8b", "llama-3.3-70b"))
    card = devices()["rtx4090"]
    assert best_match(small, card, Placement(), wanted) is not None
    assert best_match(large, card, Placement(), wanted) is None
    assert fits_on(small, card, Placement(), wanted)
    assert not fits_on(small, card, Placement(), Wanted(131_072, 8))
    both = best_match(large, card, Placement(), Wanted(4096, 1, 4))
    assert both is not None
    assert both.placement.ranks in (2, 4)
