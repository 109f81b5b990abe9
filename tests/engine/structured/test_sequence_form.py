"""The state of a sequence in its form. Oracle: a fresh matcher of xgrammar that is given the same tokens."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from xgrammar import GrammarMatcher, get_bitmask_shape

from headway.engine.sampling_params import SamplingParams
from headway.engine.structured import form as form_module
from headway.engine.structured.form import Form
from headway.errors import StepError
from tests.engine.byte_tokenizer import EOS, VOCAB, ids
from tests.engine.scripted_core import ScriptedCore, byte_forms, say

PROMPT = ids("ask")


def form_of(regex: str, **more: object) -> Form:
    form = byte_forms().form(SamplingParams(structured_outputs={"regex": regex}, **more))  # type: ignore[arg-type]
    assert form is not None
    return form


def fresh_mask(form: Form, output: list[int]) -> torch.Tensor:
    matcher = GrammarMatcher(form.grammar)
    assert all(matcher.accept_token(t) for t in output)
    mask = torch.zeros(get_bitmask_shape(1, VOCAB), dtype=torch.int32)
    matcher.fill_next_token_bitmask(mask)
    return mask[0]


@settings(max_examples=40, deadline=None)
@given(outputs=st.lists(st.text("abc", max_size=7), max_size=12))
def test_the_mask_follows_from_the_tokens_alone(outputs: list[str]) -> None:
    """Longer, shorter and other outputs one after another, as drafts and their rejection make them."""
    form = form_of("[abc]{0,8}d")
    state = form.begin()
    masks = torch.zeros(get_bitmask_shape(1, VOCAB), dtype=torch.int32)
    for text in outputs:
        assert state.fill([*PROMPT, *ids(text)], len(PROMPT), masks, 0)
        assert torch.equal(masks[0], fresh_mask(form, ids(text)))


@settings(max_examples=40, deadline=None)
@given(outputs=st.lists(st.tuples(st.text("z", max_size=3), st.booleans(), st.text("abc", max_size=7)), max_size=12))
def test_nothing_is_held_to_the_form_before_its_marker(outputs: list[tuple[str, bool, str]]) -> None:
    form = replace(form_of("[abc]{0,8}d"), starts_after=tuple(ids("</t>")))
    state = form.begin()
    masks = torch.zeros(get_bitmask_shape(1, VOCAB), dtype=torch.int32)
    for free, begun, rest in outputs:
        text = f"{free}</t>{rest}" if begun else free + rest
        assert state.fill([*PROMPT, *ids(text)], len(PROMPT), masks, 0) is begun
        assert not begun or torch.equal(masks[0], fresh_mask(form, ids(rest)))


def test_an_output_that_has_left_the_form_is_an_error_and_forgotten_again() -> None:
    form = form_of("[abc]{0,8}d")
    state = form.begin()
    masks = torch.zeros(get_bitmask_shape(1, VOCAB), dtype=torch.int32)
    for wrong in ("abx", "adx", "dd"):
        with pytest.raises(StepError):
            state.fill([*PROMPT, *ids(wrong)], len(PROMPT), masks, 0)
    with pytest.raises(StepError):
        state.fill([*PROMPT, *ids("d"), EOS, EOS], len(PROMPT), masks, 0)
    assert state.fill([*PROMPT, *ids("ab")], len(PROMPT), masks, 0)
    assert torch.equal(masks[0], fresh_mask(form, ids("ab")))


def test_the_ends_of_an_answer_can_be_forbidden() -> None:
    masks = torch.zeros(get_bitmask_shape(1, VOCAB), dtype=torch.int32)
    for ignored in (False, True):
        assert form_of("a{0,3}", ignore_eos=ignored).begin().fill(PROMPT, len(PROMPT), masks, 0)
        assert bool(int(masks[0][EOS >> 5]) >> (EOS & 31) & 1) is not ignored


def test_a_form_that_takes_too_long_ends_its_sequence_with_a_reason_and_no_traceback(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(form_module, "_SECONDS", -1000.0)
    world = ScriptedCore(say("aaa"))
    world.add("a", structured_outputs={"regex": "a{3}"}, temperature=0)
    assert world.run()["a"][-1].outputs[0].finish_reason == "error"
    assert "structured_outputs_failed" in caplog.text
    assert not any(record.exc_info for record in caplog.records)
