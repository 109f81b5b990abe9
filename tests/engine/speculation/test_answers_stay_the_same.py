"""With and without speculation a request gets the same tokens, texts, log-probabilities and ends, whatever it asks for, whatever is
proposed, and whatever happens meanwhile."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.engine.outputs import OutputKind
from headway.engine.speculation import verification
from headway.engine.speculation.ngram import NgramProposer
from headway.engine.speculation.settings import speculation_settings
from headway.engine.speculation.suffix import SuffixProposer
from tests.engine.byte_tokenizer import EOS, ids
from tests.engine.speculation.prefix_core import PrefixCore, Remembering

REQUEST = st.fixed_dictionaries(
    {
        "prompt": st.lists(st.sampled_from(ids("abc ")), min_size=1, max_size=30),
        "temperature": st.sampled_from([0.0, 0.5, 1.0, 1.5]),
        "n": st.sampled_from([1, 1, 3]),
        "seed": st.sampled_from([None, 5]),
        "max_tokens": st.integers(1, 24),
        "min_tokens": st.sampled_from([0, 1]),
        "repetition_penalty": st.sampled_from([1.0, 1.3]),
        "frequency_penalty": st.sampled_from([0.0, 0.7]),
        "bad_words": st.sampled_from([None, ["a", "bc"]]),
        "logprobs": st.sampled_from([None, 0, 2]),
        "stop": st.sampled_from([None, ["a"], ["qu", "x"]]),
        "stop_token_ids": st.sampled_from([None, ids("efg")]),
        "ignore_eos": st.booleans(),
        "top_k": st.sampled_from([0, 3]),
        "logit_bias": st.sampled_from([None, {65: 20.0, 66: 20.0, EOS: 15.0}]),
    }
)


def filled(world: PrefixCore, requests: list[dict[str, Any]], kind: OutputKind = OutputKind.CUMULATIVE, interval: int = 1) -> PrefixCore:
    for i, given_params in enumerate(requests):
        params = dict(given_params)
        if params["temperature"] == 0:
            params["n"] = 1
        params["min_tokens"] = min(params["min_tokens"], params["max_tokens"])
        world.add(str(i), params.pop("prompt"), output_kind=kind, stream_interval=interval, **params)
    world.run()
    return world


def told(world: PrefixCore) -> dict[str, list[tuple[Any, ...]]]:
    return {
        name: [(c.index, c.text, c.token_ids, c.finish_reason, c.stop_reason, c.logprobs, c.cumulative_logprob) for c in outputs[-1].outputs]
        for name, outputs in world.outputs.items()
    }


@settings(max_examples=40, deadline=None)
@given(
    requests=st.lists(REQUEST, min_size=1, max_size=4),
    wrong=st.sampled_from([0.0, 0.2, 0.6]),
    caching=st.booleans(),
    budget=st.sampled_from([5, 64]),
    num_blocks=st.sampled_from([16, 200]),
    drafts=st.integers(1, 9),
    rows=st.sampled_from([3, 1000]),
    seed=st.integers(0, 99),
)
def test_whatever_is_proposed(requests, wrong, caching, budget, num_blocks, drafts, rows, seed) -> None:
    shape: dict[str, Any] = {"caching": caching, "budget": budget, "num_blocks": num_blocks}
    plain = filled(PrefixCore(**shape), requests)
    proposer = Remembering(plain.answers(), wrong, random.Random(seed))
    drafted = filled(PrefixCore(**shape, proposer=proposer, drafts=drafts, rows=rows), requests)
    assert told(drafted) == told(plain)
    assert sum(s.generation_tokens for s in drafted.steps) == sum(s.generation_tokens for s in plain.steps)
    if wrong == 0.0:
        assert drafted.rejected == 0


def many(**params: Any) -> list[dict[str, Any]]:
    ordinary = {"temperature": 1.0, "n": 1, "max_tokens": 40, "min_tokens": 0, "ignore_eos": True}
    return [{"prompt": ids("abc " * (2 + i)), **ordinary, **params} for i in range(5)]


@pytest.mark.parametrize("num_blocks", [30, 200])
@pytest.mark.parametrize("method", ["ngram", "suffix"])
def test_with_the_proposers_that_look_into_the_text(method: str, num_blocks: int) -> None:
    """Drafts are accepted and rejected, and where blocks are few, sequences are preempted in between."""
    requests = many(temperature=0.7, logit_bias=dict.fromkeys(ids("ab"), 11.0))
    plain = filled(PrefixCore(num_blocks=num_blocks), requests)
    proposer = NgramProposer(1, 3) if method == "ngram" else SuffixProposer(speculation_settings({"method": "suffix"}))  # type: ignore[arg-type]
    drafted = filled(PrefixCore(num_blocks=num_blocks, proposer=proposer), requests)
    assert told(drafted) == told(plain)
    assert drafted.accepted > 20
    assert drafted.rejected > 20
    assert (sum(s.preemptions for s in drafted.steps) > 0) == (num_blocks == 30)


def test_fewer_steps_and_one_time_for_tokens_that_come_together() -> None:
    requests = many()[:1]
    plain = filled(PrefixCore(), requests)
    drafted = filled(PrefixCore(proposer=Remembering(plain.answers(), 0.0, random.Random(0)), drafts=4), requests)
    assert len(plain.steps) == 40
    assert len(drafted.steps) == 1 + 39 // 5 + 1  # the prompt's token, seven times five, the last four
    assert sum(len(s.inter_token_seconds) for s in drafted.steps) == len(drafted.steps) - 1


@pytest.mark.parametrize("interval", [1, 4])
def test_streamed_pieces_join_to_the_whole(interval: int) -> None:
    requests = many(stop=["qu"], n=2)
    plain = filled(PrefixCore(), requests)
    proposer = Remembering(plain.answers(), 0.2, random.Random(0))
    streamed = filled(PrefixCore(proposer=proposer), requests, OutputKind.DELTA, interval)
    for name, outputs in streamed.outputs.items():
        for whole in plain.outputs[name][-1].outputs:
            parts = [c for o in outputs for c in o.outputs if c.index == whole.index]
            assert "".join(c.text for c in parts) == whole.text
            assert [t for c in parts for t in c.token_ids] == whole.token_ids
            assert all(c.token_ids for c in parts[:-1])
            if interval == 4:
                assert len(parts) <= 2 + len(whole.token_ids) // 4


def test_a_step_that_fails_hurts_only_its_culprit() -> None:
    requests = many()
    plain = filled(PrefixCore(), requests)
    drafted = PrefixCore(proposer=Remembering(plain.answers(), 0.3, random.Random(0)))
    drafted.runner.fail_when = lambda sequence: sequence.request.id == "2" and sequence.num_output >= 11
    filled(drafted, requests)
    assert drafted.outputs["2"][-1].outputs[0].finish_reason == "error"
    assert {name: out for name, out in told(drafted).items() if name != "2"} == {n: out for n, out in told(plain).items() if n != "2"}


def test_a_proposer_that_fails_ends_speculation_and_nothing_else(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Remembering):
        def propose(self, asks: Any) -> Any:
            raise ValueError("broken")

    requests = many()
    plain = filled(PrefixCore(), requests)
    drafted = filled(PrefixCore(proposer=Broken({}, 0.0, random.Random(0))), requests)
    assert told(drafted) == told(plain)
    assert drafted.steps[-1].drafting is False
    assert sum("drafting failed" in r.getMessage() for r in caplog.records) == 1


def test_only_verified_tokens_are_found_in_the_prefix_cache() -> None:
    """After a run full of rejected drafts, prompts made of its text, right and wrong, get the right answers."""
    first = many()
    plain = filled(PrefixCore(), first)
    drafted = filled(PrefixCore(proposer=Remembering(plain.answers(), 0.5, random.Random(1)), drafts=9), first)
    again = [{**r, "prompt": r["prompt"] + out[:25]} for r, out in zip(first, plain.answers().values(), strict=True)]
    for world in (plain, drafted):
        world.outputs.clear()
        filled(world, again)
    assert told(drafted) == told(plain)
    assert all(o[-1].num_cached_tokens > 20 for o in drafted.outputs.values())


def test_every_sequence_is_forgotten_once() -> None:
    proposer = Remembering({}, 0.0, random.Random(0))
    world = filled(PrefixCore(proposer=proposer), many(n=3))
    assert sorted(proposer.ends) == sorted(name for name in world.outputs for _ in range(3))


def test_this_page_would_notice_a_wrong_verification(monkeypatch: pytest.MonkeyPatch) -> None:
    """All drafts accepted, unseen: the answers differ."""

    def credulous(chunk, rows):
        drawn = [next(rows) for _ in range(1 + len(chunk.drafts))]
        return [*(type(drawn[0])(d) for d in chunk.drafts), drawn[-1]]

    requests = many()
    plain = filled(PrefixCore(), requests)
    monkeypatch.setattr(verification, "_accepted", credulous)
    drafted = filled(PrefixCore(proposer=Remembering(plain.answers(), 0.3, random.Random(0))), requests)
    assert told(drafted) != told(plain)
