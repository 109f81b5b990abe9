"""What the engine core tells its callers, with a model that follows a script."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.engine.outputs import OutputKind
from headway.errors import ContextLengthError, RequestError
from tests.engine.byte_tokenizer import EOS, VOCAB, ids
from tests.engine.scripted_core import ScriptedCore, raw_ids, say

TEXT = "The quick brown fox 🙂 中文 é jumps."


def test_eos_ends_with_stop_and_its_text_is_not_shown() -> None:
    world = ScriptedCore(say("Hello"))
    world.add("a", max_tokens=50)
    out = world.run()["a"][-1].outputs[0]
    assert (out.text, out.finish_reason, out.stop_reason) == ("Hello", "stop", None)
    assert out.token_ids == [*ids("Hello"), EOS]


def test_eos_stays_eos_when_it_is_also_a_stop_id() -> None:
    world = ScriptedCore(say("Hello"))
    world.add("a", max_tokens=50, stop_token_ids=[EOS])
    assert world.run()["a"][-1].outputs[0].stop_reason is None


def test_ignore_eos_goes_on_to_the_length() -> None:
    world = ScriptedCore(say("Hello"))
    world.add("a", max_tokens=8, ignore_eos=True)
    out = world.run()["a"][-1].outputs[0]
    assert (out.finish_reason, len(out.token_ids)) == ("length", 8)


def test_min_tokens_holds_eos_back() -> None:
    world = ScriptedCore(say("Hi"))
    world.add("a", max_tokens=20, min_tokens=6)
    out = world.run()["a"][-1].outputs[0]
    assert len(out.token_ids) == 7
    assert EOS not in out.token_ids[:6]


def test_a_stop_id_is_named_and_its_text_left_out_unless_asked_for() -> None:
    for include, text in ((False, "He"), (True, "Hel")):
        world = ScriptedCore(say("Hello"))
        world.add("a", stop_token_ids=ids("l"), include_stop_str_in_output=include)
        out = world.run()["a"][-1].outputs[0]
        assert (out.text, out.finish_reason, out.stop_reason) == (text, "stop", ids("l")[0])


@pytest.mark.parametrize(
    ("stop", "include", "text", "reason"),
    [
        ("DEFGHIJ", False, "ABC", "DEFGHIJ"),
        ("DEFGHIJ", True, "ABCDEFGHIJ", "DEFGHIJ"),
        (["HI", "DEF"], False, "ABC", "DEF"),
        ("DEFX", False, "ABCDEFGHIJK", None),
        ("K", False, "ABCDEFGHIJ", "K"),
    ],
)
def test_stop_strings_cut_exactly(stop, include, text, reason) -> None:
    world = ScriptedCore(say("ABCDEFGHIJK"))
    world.add("a", stop=stop, include_stop_str_in_output=include, max_tokens=40)
    out = world.run()["a"][-1].outputs[0]
    assert (out.text, out.finish_reason, out.stop_reason) == (text, "stop", reason)
    assert len(world.requests) == 1


def test_a_matched_stop_string_computes_nothing_more() -> None:
    world = ScriptedCore(say("ABCDEF"))
    world.add("a", stop="C", max_tokens=40)
    world.run()
    assert world.runner.calls == 3


@settings(max_examples=60, deadline=None)
@given(
    text=st.text(alphabet="abAB 🙂é中", min_size=0, max_size=20),
    stop=st.one_of(st.none(), st.text(alphabet="abAB 🙂é中", min_size=1, max_size=3)),
    interval=st.integers(1, 5),
    max_tokens=st.integers(1, 60),
)
def test_deltas_join_to_what_the_others_get_and_never_hold_half_a_character(text, stop, interval, max_tokens) -> None:
    results = []
    for kind in OutputKind:
        world = ScriptedCore(say(text))
        world.add("a", output_kind=kind, stream_interval=interval, max_tokens=max_tokens, stop=stop)
        outputs = world.run()["a"]
        assert [o.finished for o in outputs] == [False] * (len(outputs) - 1) + [True]
        last = outputs[-1].outputs[0]
        if kind is OutputKind.DELTA:
            joined = "".join(o.outputs[0].text for o in outputs)
            tokens = [t for o in outputs for t in o.outputs[0].token_ids]
            assert not any("\ufffd" in o.outputs[0].text for o in outputs[:-1])
        else:
            joined, tokens = last.text, last.token_ids
        if kind is OutputKind.FINAL_ONLY:
            assert len(outputs) == 1
        results.append((joined, tokens, last.finish_reason, last.stop_reason))
    assert results[0] == results[1] == results[2]


def test_a_limit_inside_a_character_gives_the_same_tail_streamed_or_not() -> None:
    for kind in OutputKind:
        world = ScriptedCore(say(TEXT))
        world.add("a", max_tokens=len(ids("The quick brown fox ")) + 2, output_kind=kind)
        outputs = world.run()["a"]
        text = "".join(o.outputs[0].text for o in outputs) if kind is OutputKind.DELTA else outputs[-1].outputs[0].text
        assert text.rstrip("\ufffd") == "The quick brown fox "


def test_invalid_bytes_do_not_hold_back_what_follows() -> None:
    world = ScriptedCore(say(b"\xff" + b"abcdefgh"))
    world.add("a", output_kind=OutputKind.DELTA, max_tokens=9)
    outputs = world.run()["a"]
    assert "".join(o.outputs[0].text for o in outputs[:4]) == "\ufffdabc"


def test_several_sequences_of_a_request_are_told_apart() -> None:
    world = ScriptedCore(lambda s: ids("abc")[s.index] if s.num_output < 2 + s.index else EOS)
    world.add("a", n=3, temperature=0.01, seed=1)
    last = world.run()["a"][-1]
    assert [(o.index, o.text) for o in last.outputs] == [(0, "aa"), (1, "bbb"), (2, "cccc")]
    assert [r.last_of_request for r in world.requests] == [False, False, True]
    assert world.requests[-1].longest_generation_tokens == 5


def test_logprobs_come_with_their_tokens_in_deltas() -> None:
    world = ScriptedCore(say("Hello"))
    world.add("a", logprobs=2, output_kind=OutputKind.DELTA, stream_interval=2, ignore_eos=True, max_tokens=5)
    for output in world.run()["a"]:
        (sequence,) = output.outputs
        assert sequence.logprobs is not None
        assert [next(iter(p)) for p in sequence.logprobs] == sequence.token_ids
        assert all(2 <= len(p) <= 3 for p in sequence.logprobs)


def test_each_sequence_of_a_stream_begins_with_the_prompts_logprobs() -> None:
    world = ScriptedCore(say("abc"), budget=2)
    world.add("a", [1, 2], n=2, temperature=1.0, prompt_logprobs=1, output_kind=OutputKind.DELTA, max_tokens=3)
    begun: set[int] = set()
    for output in world.run()["a"]:
        fresh = {s.index for s in output.outputs} - begun
        assert (output.prompt_logprobs is not None) == bool(fresh)
        begun |= fresh
    assert begun == {0, 1}


def test_abort_in_the_queue_and_while_running_frees_everything_and_reports_once() -> None:
    world = ScriptedCore(say("x" * 100))
    world.add("queued", max_tokens=90)
    out = world.core.abort("queued")
    assert out is not None
    assert out.outputs[0].finish_reason == "abort"
    world.check_empty()
    world.add("running", max_tokens=90, n=2, temperature=0.01)
    world.core.step()
    world.core.step()
    assert world.core.abort("running") is not None
    world.check_empty()
    assert world.core.abort("running") is None
    assert world.core.abort("never seen") is None
    assert [r.finish_reason for r in world.requests] == ["abort"] * 3
    assert world.steps[-1].running == 0


def test_a_step_that_raises_fails_its_requests_only() -> None:
    world = ScriptedCore(say("x" * 30), budget=8)
    world.runner.fail_when = lambda s: s.request.id == "bad"
    world.add("good", "p" * 8, max_tokens=3, ignore_eos=True)
    while world.core.has_work:
        world.core.step()
    world.add("bad", "q" * 8, max_tokens=3)
    (output,) = world.core.step()
    assert output.finished
    assert output.outputs[0].finish_reason == "error"
    assert "FloatingPointError" in str(output.error)
    world.check_empty()
    world.add("next", "q" * 8, max_tokens=3, ignore_eos=True)
    assert world.run()["next"][-1].outputs[0].finish_reason == "length"
    assert world.requests[-1].cached_tokens == 0, "what a failed step promised to the cache must be forgotten"


def test_statistics_count_each_prompt_token_once_and_each_generated_token() -> None:
    world = ScriptedCore(say("x" * 60), num_blocks=1 + 16, budget=7)
    for i in range(4):
        world.add(str(i), f"prompt number {i}", max_tokens=20, ignore_eos=True)
    world.run()
    assert sum(s.preemptions for s in world.steps) > 0
    assert sum(s.prompt_tokens for s in world.steps) == 4 * len("prompt number 0")
    assert sum(s.generation_tokens for s in world.steps) == 80
    assert sum(len(s.first_token_seconds) for s in world.steps) == 4
    assert sum(len(s.inter_token_seconds) for s in world.steps) == 76
    assert sum(r.preemptions for r in world.requests) == sum(s.preemptions for s in world.steps)


def test_preempted_streams_neither_repeat_nor_skip() -> None:
    world = ScriptedCore(say("abcdefghijklmnopqrstuvwxyz"), num_blocks=1 + 12)
    for i in range(5):
        world.add(str(i), f"prompt {i}", max_tokens=20, output_kind=OutputKind.DELTA)
    outputs = world.run()
    assert sum(s.preemptions for s in world.steps) > 0
    for i in range(5):
        assert "".join(o.outputs[0].text for o in outputs[str(i)]) == "abcdefghijklmnopqrst"


def test_a_row_with_every_token_forbidden_ends_there_and_its_neighbour_goes_on() -> None:
    world = ScriptedCore(say("abcd"))
    world.add("bad", allowed_token_ids=ids("ab"), bad_words=["b", "aa", "ab"], max_tokens=8)
    world.add("good", max_tokens=4)
    outputs = world.run()
    last = outputs["bad"][-1]
    assert (last.outputs[0].text, last.outputs[0].finish_reason, last.outputs[0].stop_reason) == ("a", "stop", "no token is allowed")
    assert last.error is None
    assert sum(s.generation_tokens for s in world.steps) == sum(r.generation_tokens for r in world.requests) == 1 + 4
    assert outputs["good"][-1].outputs[0].text == "abcd"


@pytest.mark.parametrize(
    ("param", "extra"),
    [
        ("logit_bias", {"logit_bias": {VOCAB: 1.0}}), ("logit_bias", {"logit_bias": {-1: 1.0}}), ("logit_bias", {"logit_bias": {3: 1e308}}),
        ("logit_bias", {"logit_bias": {3: float("nan")}}), ("stop_token_ids", {"stop_token_ids": [VOCAB]}), ("stop_token_ids", {"stop_token_ids": [-1]}),
        ("allowed_token_ids", {"allowed_token_ids": [VOCAB]}), ("logprobs", {"logprobs": 21}), ("logprobs", {"logprobs": -1}),
        ("prompt_logprobs", {"prompt_logprobs": 21}), ("bad_words", {"allowed_token_ids": raw_ids(b"a"), "bad_words": ["a"]}),
        ("min_tokens", {"allowed_token_ids": [EOS], "min_tokens": 1}),
        ("min_tokens", {"allowed_token_ids": [*raw_ids(b"ab"), EOS], "stop_token_ids": raw_ids(b"b"), "bad_words": ["a"], "min_tokens": 1}),
        ("min_tokens", {"stop_token_ids": list(range(VOCAB)), "min_tokens": 1}),
        ("stop_token_ids", {"stop_token_ids": [1] * 2**20, "n": 2, "temperature": 1}), ("allowed_token_ids", {"allowed_token_ids": [1] * (2**20 + 1)}),
        ("logit_bias", {"logit_bias": dict.fromkeys(range(1100), 1.0), "n": 1000, "temperature": 1}), ("stop", {"stop": ["b" * 8192, "c" * 8193]}),
        ("bad_words", {"bad_words": ["a" * 1025]}), ("bad_words", {"bad_words": ["a" * 600] * 2}), ("bad_words", {"bad_words": ["a" * 20_000]}),
    ],
)  # fmt: skip
def test_admission_refuses_what_would_hurt_a_step_and_names_the_field(param, extra) -> None:
    world = ScriptedCore(say("x"))
    with pytest.raises(RequestError) as caught:
        world.admit("a", "Hi", **extra)
    assert caught.value.param == param


def test_bad_words_of_tokens_that_the_model_cannot_write_are_refused() -> None:
    world = ScriptedCore(say("x"))
    world.limits = replace(world.limits, vocab_size=EOS)  # as where a tokenizer has added tokens without rows in the model
    with pytest.raises(RequestError, match="bad_words holds token id 256"):
        world.admit("a", "Hi", bad_words=["<eos>"])


@pytest.mark.parametrize("limit", [-1, 10 * VOCAB])
@pytest.mark.parametrize("name", ["logprobs", "prompt_logprobs"])
def test_nobody_gets_more_logprobs_than_the_vocabulary_has(limit: int, name: str) -> None:
    world = ScriptedCore(say("x"))
    world.limits = replace(world.limits, max_logprobs=limit)
    with pytest.raises(RequestError, match=f"at most {VOCAB}"):
        world.admit("a", "Hi", **{name: VOCAB + 1})
    for asked in (-1, VOCAB):
        world.add(f"{asked}", "Hi", max_tokens=1, **{name: asked})
    assert all(outputs[-1].error is None for outputs in world.run().values())


def test_admission_checks_prompt_length_and_ids() -> None:
    world = ScriptedCore(say("x"), max_model_len=64)
    with pytest.raises(RequestError, match="no tokens"):
        world.admit("a", [])
    for length in (64, 65, 5000):
        with pytest.raises(ContextLengthError, match=r"maximum context length is 64 tokens\. However, .* " + str(length)):
            world.admit("a", [1] * length)
    for bad in (VOCAB, -1):
        with pytest.raises(RequestError, match="out of range"):
            world.admit("a", [1, bad])
    assert world.admit("a", [1] * 60, max_tokens=None).sequences[0].max_tokens_total == 64
    assert world.admit("a", [1] * 60, max_tokens=10).sequences[0].max_tokens_total == 64
    assert world.admit("a", [1] * 10, max_tokens=10).sequences[0].max_tokens_total == 20


def test_the_context_limit_ends_with_length() -> None:
    world = ScriptedCore(say("x" * 100), max_model_len=16)
    world.add("a", [1] * 12, max_tokens=None)
    out = world.run()["a"][-1].outputs[0]
    assert (len(out.token_ids), out.finish_reason) == (4, "length")


def test_one_culprit_in_a_step_fails_alone() -> None:
    world = ScriptedCore(say("abcdefgh"))
    world.runner.fail_when = lambda s: s.request.id == "bad" and s.num_output == 2
    for name in ("first", "bad", "last"):
        world.add(name, max_tokens=6, ignore_eos=True, presence_penalty=1.0, temperature=0.5, seed=3)
    outputs = world.run()
    assert outputs["bad"][-1].outputs[0].finish_reason == "error"
    assert len(outputs["bad"][-1].outputs[0].token_ids) == 2
    quiet = ScriptedCore(say("abcdefgh"))
    quiet.add("first", max_tokens=6, ignore_eos=True, presence_penalty=1.0, temperature=0.5, seed=3)
    want = quiet.run()["first"][-1].outputs[0]
    for name in ("first", "last"):
        assert outputs[name][-1].outputs[0].token_ids == want.token_ids
        assert outputs[name][-1].outputs[0].finish_reason == "length"


def test_who_shares_blocks_of_a_failed_chunk_is_computed_anew() -> None:
    """Both are admitted in one step, and the second reads the blocks that the first was to write."""
    world = ScriptedCore(say("abcdefgh"))
    world.runner.fail_when = lambda s: s.request.id == "writer"
    world.add("writer", "p" * 21, max_tokens=3)
    reader = world.add("reader", "p" * 20 + "q", max_tokens=3, ignore_eos=True).sequences[0]
    outputs = world.core.step()
    assert [o.request_id for o in outputs] == ["writer"]
    assert outputs[0].error is not None
    assert (reader.num_computed, reader.table.blocks) == (0, [])
    assert world.run()["reader"][-1].outputs[0].text == "abc"


def test_a_text_that_cannot_be_written_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    world = ScriptedCore(say("abcdefgh"))
    for name in ("good", "bad"):
        world.add(name, max_tokens=6, ignore_eos=True)
    text = world.core._streams["bad"].texts[0]

    def broken(*_: object, **__: object) -> None:
        raise UnicodeError("injected")

    monkeypatch.setattr(text._detokenizer, "_stream", SimpleNamespace(push=broken, flush=broken))
    outputs = world.run()
    assert outputs["bad"][-1].outputs[0].finish_reason == "error"
    assert "UnicodeError" in str(outputs["bad"][-1].error)
    assert outputs["good"][-1].outputs[0].text == "abcdef"


def test_of_many_sequences_only_so_many_exist_as_a_step_may_hold() -> None:
    world = ScriptedCore(say("abcdef"), max_num_seqs=4)
    request = world.add("many", "p" * 30, n=50, temperature=0.01, seed=7, max_tokens=3, ignore_eos=True)
    assert len(request.sequences) == 4
    assert [len(s.hashes) for s in request.sequences] == [30 // 4] * 4
    world.add("other", max_tokens=3)
    most = 0
    outputs = []
    while world.core.has_work:
        outputs += world.core.step()
        most = max(most, sum(s.finish_reason is None for s in request.sequences))
        assert world.steps[-1].waiting + world.steps[-1].running <= 51
        assert sum(len(s.tokens) for s in request.sequences) <= 4 * (30 + 3) + 50 * 3, "those that ended hold no prompts"
    assert most == 4
    assert max(s.waiting for s in world.steps) >= 46, "those that do not exist yet wait as well"
    (many,) = [o for o in outputs if o.request_id == "many" and o.finished]
    assert [o.index for o in many.outputs] == list(range(50))
    assert all(o.text == "abc" for o in many.outputs)
    assert [s.params.seed for s in request.sequences] == list(range(7, 57))
    assert len({s.order for s in request.sequences}) == 50
    assert sum(r.last_of_request for r in world.requests) == 2
    assert [r.prompt_tokens for r in world.requests if r.n == 50] == [30] * 50
    assert sum(s.prompt_tokens for s in world.steps) == 50 * 30 + len("Hi")
    world.check_empty()


def test_abort_ends_sequences_that_do_not_exist_yet() -> None:
    world = ScriptedCore(say("abcdef"), max_num_seqs=4)
    world.add("many", n=50, temperature=0.01, max_tokens=3, ignore_eos=True)
    world.core.step()
    output = world.core.abort("many")
    assert output is not None
    assert output.finished
    world.check_empty()
    assert world.steps[-1].waiting == 0


def test_a_second_try_counts_no_token_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first try fails after the penalties have counted its tokens."""

    def run(broken: bool) -> dict[str, list[int]]:
        world = ScriptedCore(lambda s: 5)
        for name in ("a", "b"):
            world.add(name, max_tokens=8, ignore_eos=True, frequency_penalty=2.0, presence_penalty=2.0, logprobs=0)
        original = world.core.sampler._logprobs
        if broken:

            def logprobs(rows: Any, batch: Any, tokens: Any) -> Any:
                if len(batch.sequences) > 1:
                    raise FloatingPointError("injected")
                return original(rows, batch, tokens)

            monkeypatch.setattr(world.core.sampler, "_logprobs", logprobs)
        return {name: out[-1].outputs[0].token_ids for name, out in world.run().items()}

    want = run(broken=False)
    assert len(set(want["a"])) > 1, "the penalties never matter"
    assert run(broken=True) == want
