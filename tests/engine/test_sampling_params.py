from __future__ import annotations

import pytest

from headway.engine.sampling_params import SamplingParams
from headway.errors import NotBuiltError, RequestError


@pytest.mark.parametrize(
    ("param", "value"),
    [
        ("n", 0), ("n", 20_000), ("n", True), ("presence_penalty", 2.1), ("frequency_penalty", -3), ("repetition_penalty", 0),
        ("temperature", -0.1), ("temperature", 2.5), ("temperature", float("nan")), ("temperature", "hot"), ("top_p", 0), ("top_p", 1.01),
        ("top_k", -2), ("top_k", 1.5), ("min_p", 1.2), ("seed", 2**64), ("max_tokens", 0), ("min_tokens", -1), ("min_tokens", 17),
        ("logprobs", -2), ("logprobs", 1.5), ("prompt_logprobs", -2), ("prompt_logprobs", True), ("stop", ""), ("stop", ["a", ""]), ("stop", [1]), ("stop", list("abcde")),
        ("bad_words", [""]), ("allowed_token_ids", []), ("stream_interval", 0), ("stop", 5), ("bad_words", 5), ("stop_token_ids", 5),
        ("stop_token_ids", [1.5]), ("stop_token_ids", "ab"), ("allowed_token_ids", 5), ("allowed_token_ids", ["a"]), ("logprob_token_ids", [None]),
        ("logit_bias", 5), ("logit_bias", [1]), ("logit_bias", {"a": 1}), ("logit_bias", {1: "x"}), ("logit_bias", {1: None}),
    ],
)  # fmt: skip
def test_values_out_of_range_are_refused_by_name(param: str, value: object) -> None:
    with pytest.raises(RequestError) as caught:
        SamplingParams(**{param: value})
    assert caught.value.param == param
    assert param in caught.value.message


def test_greedy_with_n_is_refused() -> None:
    with pytest.raises(RequestError, match="n must be 1"):
        SamplingParams(n=2, temperature=0)


def test_stop_strings_need_text() -> None:
    with pytest.raises(RequestError, match="detokenize"):
        SamplingParams(stop="x", detokenize=False)


def test_options_of_other_grammar_libraries_are_not_silently_ignored() -> None:
    with pytest.raises(NotBuiltError):
        SamplingParams(structured_outputs={"regex": "a", "whitespace_pattern": " "})


def test_processors_of_a_request_are_refused_with_the_way_out() -> None:
    with pytest.raises(RequestError, match="AdapterLogitsProcessor"):
        SamplingParams(logits_processors=[lambda ids, row: row])
    with pytest.raises(RequestError, match="mapping"):
        SamplingParams(extra_args=[1])  # type: ignore[arg-type]


def test_tiny_temperatures_are_raised_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    assert SamplingParams(temperature=1e-3).temperature == 1e-2
    assert "raised" in caplog.text
    assert not SamplingParams(temperature=1e-6).greedy
    assert SamplingParams(temperature=0).greedy


def test_a_single_stop_becomes_a_list_and_sequences_get_their_own_seed() -> None:
    params = SamplingParams(n=3, stop="x", seed=5)
    assert params.stop_strings == ["x"]
    assert [params.for_sequence(i).seed for i in range(3)] == [5, 6, 7]
    assert params.for_sequence(1).n == 1
    assert params.for_sequence(1).stop_token_ids is params.stop_token_ids  # n copies of a long list would fill the memory
    assert SamplingParams(n=2, seed=2**63 - 1).for_sequence(1).seed == -(2**63)


def test_a_long_offending_value_is_cut_in_the_message() -> None:
    with pytest.raises(RequestError) as caught:
        SamplingParams(stop=["x" * 10_000, ""])
    assert len(caught.value.message) < 400
