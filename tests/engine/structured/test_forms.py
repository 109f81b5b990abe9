"""Forms with everything real but the model, which says bytes at random. Judges of the answers: jsonschema_rs, re, json."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xgrammar import GrammarMatcher

from headway.engine.sampling_params import SamplingParams
from headway.engine.structured import forms as module
from headway.engine.structured.compile_service import Refusal
from headway.engine.structured.config import StructuredConfig
from headway.engine.structured.forms import Forms
from headway.engine.structured.request import StructuredOutputs
from headway.engine.structured.schema_support import left_out
from headway.errors import QueueFullError, RequestError
from tests.engine.byte_tokenizer import EOS, VOCAB, byte_tokenizer, ids
from tests.engine.scripted_core import ScriptedCore, byte_forms, new_forms, say

PERSON = {
    "type": "object", "required": ["name", "age"], "additionalProperties": False,
    "properties": {"name": {"type": "string", "maxLength": 6}, "age": {"type": "integer", "minimum": 0, "maximum": 130}},
}  # fmt: skip
TAG = {"type": "structural_tag", "format": {"type": "tag", "begin": "<f>", "content": {"type": "json_schema", "json_schema": PERSON}, "end": "</f>"}}
OLD_TAG = {"type": "structural_tag", "structures": [{"begin": "<f>", "schema": PERSON, "end": "</f>"}], "triggers": ["<f"]}


def wild(world_seed: int = 0) -> ScriptedCore:
    """The logit of one byte is 10, which the form mostly forbids; among those that it allows, all are equally likely."""
    return ScriptedCore(lambda s: (s.num_output * 37 + world_seed) % 256)


def answer(form: dict[str, Any], *, core: ScriptedCore | None = None, seed: int = 1, **params: Any) -> Any:
    world = core or wild()
    world.add("a", structured_outputs=form, **{"temperature": 1.0, "seed": seed, "max_tokens": 300, **params})
    return world.run()["a"][-1].outputs[0]


def one(letter: str) -> int:
    return ids(letter)[0]


def fits(schema: dict[str, Any], text: str) -> bool:
    return bool(jsonschema_rs.is_valid(schema, json.loads(text)))


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(
    ("form", "right"),
    [
        ({"json": PERSON}, lambda t: fits(PERSON, t)),
        ({"json": json.dumps(PERSON), "disable_any_whitespace": True}, lambda t: fits(PERSON, t)),
        ({"json": {"enum": ["é😀", 2, None]}}, lambda t: json.loads(t) in ("é😀", 2, None)),
        ({"regex": r"[0-9]{3}-[a-f]{2}(xy|z)?"}, lambda t: re.fullmatch(r"[0-9]{3}-[a-f]{2}(xy|z)?", t)),
        ({"choice": ['al"pha', "ome\\ga\n", "ü"]}, lambda t: t in ('al"pha', "ome\\ga\n", "ü")),
        ({"grammar": 'root ::= "x" | "y" root'}, lambda t: re.fullmatch("y*x", t)),
        ({"grammar": 'start: "a" NUMBER\nNUMBER: /[0-9]/'}, lambda t: re.fullmatch("a[0-9]", t)),
        ({"structural_tag": TAG}, lambda t: t.startswith("<f>") and fits(PERSON, t[3:].removesuffix("</f>"))),
    ],
)  # fmt: skip
def test_an_answer_has_its_form_and_ends_where_the_form_does(form: dict[str, Any], right: Any, seed: int) -> None:
    output = answer(form, seed=seed)
    assert output.finish_reason == "stop"
    assert right(output.text), output.text


def test_any_object() -> None:
    world = wild()
    world.add("a", structured_outputs={"json_object": True}, temperature=1.0, seed=3, max_tokens=40, logit_bias={EOS: 100.0, one("}"): 30.0})
    output = world.run()["a"][-1].outputs[0]
    assert isinstance(json.loads(output.text), dict)


def test_an_old_structural_tag_is_free_until_its_trigger() -> None:
    world = ScriptedCore(say("hi <f>"))
    output = answer({"structural_tag": OLD_TAG}, core=world, temperature=0)
    assert output.text.startswith("hi <f>")
    assert fits(PERSON, output.text[6 : output.text.index("</f>")])


def test_blanks_end() -> None:
    world = ScriptedCore(lambda s: one(" "))  # would write blanks for ever
    output = answer({"json": PERSON}, core=world, temperature=0)
    assert output.finish_reason == "stop"
    assert fits(PERSON, output.text)
    assert "     " not in re.sub('"[^"]*"', "x", output.text)
    assert " " not in answer({"json": {"const": {"a": 1}}, "disable_any_whitespace": True}, core=world, temperature=0).text.replace(", ", "")


def test_ends_of_the_answer() -> None:
    """min_tokens holds the end back while the form allows more; ignore_eos goes on while it does, and then ends."""
    bias = {EOS: 100.0}
    assert answer({"regex": "a{1,9}"}, logit_bias=bias).text == "a"
    assert answer({"regex": "a{1,9}"}, logit_bias=bias, min_tokens=5).text == "aaaaa"
    ignoring = answer({"regex": "a{1,9}"}, logit_bias=bias, ignore_eos=True)
    assert (ignoring.text, ignoring.finish_reason) == ("a" * 9, "stop")
    assert answer({"regex": "[ab]{9}"}, stop=["b"], logit_bias={one("b"): 100.0}).text == ""


def test_many_in_one_batch_beside_free_ones_and_after_preemption() -> None:
    """The same seeds give the same answers, whether or not the cache has room for all."""
    texts, letters = [], ids("abcdefghijklmnopqrstuvwxyz")
    for blocks in (400, 14):
        world = ScriptedCore(lambda s: letters[s.num_output % 26], num_blocks=blocks)
        world.add("json", structured_outputs={"json": PERSON}, temperature=1.0, seed=5, n=3, max_tokens=45, logprobs=2)
        world.add("regex", structured_outputs={"regex": "[0-9]{20}"}, temperature=1.0, seed=6, max_tokens=45, repetition_penalty=1.2)
        world.add("free", max_tokens=30, ignore_eos=True)
        last = {name: outputs[-1] for name, outputs in world.run().items()}
        assert all(fits(PERSON, o.text) for o in last["json"].outputs if o.finish_reason == "stop")
        assert re.fullmatch("[0-9]{20}", last["regex"].outputs[0].text)
        assert last["free"].outputs[0].text.startswith("abcdef")
        texts.append({name: [o.text for o in output.outputs] for name, output in last.items()})
        assert blocks == 400 or sum(s.preemptions for s in world.steps) > 0
    assert texts[0] == texts[1]


def test_log_probabilities_are_those_of_what_the_form_allows() -> None:
    output = answer({"choice": ["a", "b"]}, logprobs=5)
    first = output.logprobs[0]
    assert sum(2.718281828459045 ** entry.logprob for entry in first.values() if entry.logprob > -100) == pytest.approx(1.0, abs=1e-4)


def test_a_form_may_begin_after_a_marker() -> None:
    """Free until the ids of the marker, then held to the form; the marker itself is not part of it."""
    world = ScriptedCore(say("no form here </t>neither"))
    asked = StructuredOutputs(choice=["yes"], starts_after=tuple(ids("</t>")))
    world.add("a", structured_outputs=asked, temperature=0, max_tokens=60)
    output = world.run()["a"][-1].outputs[0]
    assert (output.text, output.finish_reason) == ("no form here </t>yes", "stop")


# ---- random schemas ------------------------------------------------------------------------------------------------

_leaf = st.one_of(
    st.sampled_from([{"type": "boolean"}, {"type": "null"}, {"type": "integer", "minimum": -20, "maximum": 90}]),
    st.builds(lambda n: {"type": "string", "maxLength": n}, st.integers(0, 4)),
    st.builds(lambda values: {"enum": values}, st.lists(st.text(max_size=3), min_size=1, max_size=3, unique=True)),
)
_schema = st.recursive(
    _leaf,
    lambda inner: st.one_of(
        st.builds(lambda s, n: {"type": "array", "items": s, "minItems": 1, "maxItems": n}, inner, st.integers(1, 2)),
        st.builds(
            lambda parts, needed: {"type": "object", "properties": parts, "required": sorted(parts)[:needed], "additionalProperties": False},
            st.dictionaries(st.sampled_from(["a", "b", 'q"', "ä"]), inner, min_size=1, max_size=3), st.integers(0, 3),
        ),
        st.builds(lambda *each: {"anyOf": list(each)}, inner, inner),
    ),
    max_leaves=5,
)  # fmt: skip


@settings(max_examples=15, deadline=None)
@given(schema=_schema, seed=st.integers(0, 1000))
def test_answers_fit_schemas_of_all_kinds(schema: dict[str, Any], seed: int) -> None:
    output = answer({"json": schema}, seed=seed)
    if output.finish_reason == "stop":
        assert fits(schema, output.text), (schema, output.text)


# ---- grammars that cannot be used ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "form",
    [
        {"regex": "("}, {"regex": "[a"}, {"regex": "foo**"}, {"regex": "a{3,1}"}, {"grammar": "root ::= ("}, {"grammar": "root ::= missing"},
        {"grammar": "no rule"}, {"json": {"type": "strnig"}}, {"json": {"$ref": "#/nope"}}, {"json": False},
        {"json": {"type": "integer", "minimum": 5, "maximum": 1}}, {"json": {"enum": []}},
        {"json": {"type": "string", "pattern": "("}}, {"json": {"type": "string", "pattern": "(" * 200 + ")" * 200}},
        {"structural_tag": {"type": "structural_tag"}}, {"structural_tag": {"structures": [{}], "triggers": []}},
    ],
)  # fmt: skip
def test_what_cannot_be_compiled_is_refused(form: dict[str, Any]) -> None:
    with pytest.raises(RequestError) as refused:
        byte_forms().form(SamplingParams(structured_outputs=form))
    assert refused.value.reason == "structured_outputs_invalid"
    assert "/project/" not in refused.value.message


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "number", "multipleOf": 3}, {"type": "integer", "multipleOf": 3, "minimum": 2}, {"minLength": 2}, {"required": ["a"]},
        {"type": "object", "properties": {"a": {}}, "required": ["b"]}, {"enum": ["a", 1], "type": "string"}, {"$ref": "#/$defs/a", "minimum": 1, "$defs": {"a": {}}},
        {"anyOf": [{"type": "string", "maxLength": 2}, {"maxLength": 1}]}, {"type": "array", "uniqueItems": True}, {"type": "array", "contains": {"type": "null"}},
        {"type": "string", "pattern": "a+", "maxLength": 3}, {"not": {"type": "null"}}, {"$ref": "http://example.com/schema"}, {"if": {}, "then": {}},
        {"$ref": "#name", "$defs": {"a": {"$anchor": "name", "type": "integer"}}}, {"$ref": "#/x/y", "x": {"y": {"uniqueItems": True}}},
        {"properties": {"a": {"allOf": [{"type": "string"}, {"enum": ["x"]}]}}},
    ],
)  # fmt: skip
def test_a_keyword_that_would_be_ignored_is_refused_by_name(schema: dict[str, Any]) -> None:
    with pytest.raises(RequestError, match="not supported") as refused:
        byte_forms().form(SamplingParams(structured_outputs={"json": schema}))
    assert refused.value.reason == "structured_outputs_unsupported"


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "number", "minimum": 1e-9, "maximum": 2e-9}, "allows nothing"),
        ({"type": "number", "exclusiveMinimum": 0, "maximum": 1e-7}, "allows nothing"),
        ({"type": "object", "properties": {"a": {"type": ["number", "null"], "minimum": 0.1234567, "maximum": 0.1234568}}}, "allows nothing"),
        ({"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 2}, "allows nothing"),
        ({"anyOf": []}, "allows nothing"), ({"oneOf": []}, "allows nothing"), ({"type": []}, "type in the schema must be"),
        ({"type": "array", "items": {"anyOf": []}}, "allows nothing"),
        ({"type": "string", "pattern": 5}, "pattern in the schema must be a string, got 5"),
        ({"type": "string", "minLength": -1}, "minLength in the schema must be a whole number that is not negative, got -1"),
    ],
)  # fmt: skip
def test_a_schema_that_nothing_fits_is_refused_in_words_of_our_own(schema: dict[str, Any], words: str) -> None:
    with pytest.raises(RequestError, match=words) as refused:
        byte_forms().form(SamplingParams(structured_outputs={"json": schema}))
    assert refused.value.reason == "structured_outputs_invalid"


def test_bounds_that_leave_one_number() -> None:
    for schema in ({"type": "number", "exclusiveMinimum": 0, "maximum": 0.000001}, {"type": "number", "minimum": 3, "maximum": 3}):
        assert fits(schema, answer({"json": schema}).text)


def test_an_object_with_more_optional_properties_than_can_be_followed_is_refused_by_number() -> None:
    def asked(count: int) -> SamplingParams:
        properties = {f"p{i}": {"type": "string"} for i in range(count)}
        return SamplingParams(structured_outputs={"json": {"type": "object", "properties": properties, "required": ["p0"], "additionalProperties": False}})

    with pytest.raises(RequestError, match="1001 properties that are not required") as refused:
        byte_forms().form(asked(1002))
    assert refused.value.reason == "structured_outputs_too_large"
    assert byte_forms().form(asked(1001)) is not None


def test_tokens_that_run_out_on_the_way_are_an_error_unless_the_form_is_complete() -> None:
    cut = answer({"json": PERSON}, allowed_token_ids=ids('{" :nam'))
    assert (cut.finish_reason, cut.stop_reason) == ("error", None)
    assert answer({"regex": "ab(cd)?"}, allowed_token_ids=ids("ab")).finish_reason == "stop"
    with pytest.raises(RequestError, match="allow nothing"):
        answer({"choice": ["yes", "no"]}, allowed_token_ids=ids("abc"))


_TRICKY: list[tuple[dict[str, Any], list[Any]]] = [
    ({"allOf": [{"type": "string"}, {"enum": ["yes"]}]}, ["no", 3]),
    ({"type": "integer", "multipleOf": 3}, [4, 3]),
    ({"type": "string", "pattern": "^a+$", "maxLength": 3}, ["aaaa"]),
    ({"type": "object", "patternProperties": {"^a": {"type": "integer"}, "^b": {"type": "null"}}, "properties": {"c": {}}}, [{"a": "x"}, {"b": 1}, {"a": 1}]),
    ({"type": "object", "minProperties": 2, "properties": {"a": {}, "b": {}, "c": {}}}, [{"a": 1}, {"a": 1, "b": 1}]),
    ({"type": "object", "required": ["z"], "additionalProperties": True}, [{}]),
    ({"type": "object", "properties": {"a": {}}, "anyOf": [{"required": ["a"]}, {"type": "object"}]}, [{"b": 1}]),
    ({"type": ["integer", "string"], "minimum": 3, "maxLength": 1}, [1, 4, "aa", "a"]),
    ({"minItems": 1}, [[]]),
    ({"const": "a", "type": "integer"}, ["a"]),
    ({"type": "array", "prefixItems": [{"type": "integer"}], "items": {"type": "string"}}, [[1, 2], [1, "a"], ["a"]]),
    ({"type": "object", "properties": {"a": {"type": "integer"}}, "unevaluatedProperties": False}, [{"b": 1}, {"a": 1}]),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "values"), _TRICKY)
def test_a_schema_is_kept_to_or_refused(schema: dict[str, Any], values: list[Any]) -> None:
    if left_out(schema) is None:
        form = byte_forms().form(SamplingParams(structured_outputs={"json": schema}))
        assert form is not None
        for value in values:
            matcher = GrammarMatcher(form.grammar, terminate_without_stop_token=True)
            taken = matcher.accept_string(json.dumps(value)) and matcher.is_terminated()
            assert not taken or jsonschema_rs.is_valid(schema, value)


def test_keywords_in_other_places_are_no_keywords() -> None:
    named = {"type": "object", "properties": {"not": {"const": {"if": 1}}, "uniqueItems": {"type": "integer", "multipleOf": 7}}, "required": ["not"]}
    shared = {"type": "object", "properties": {"a": {"$ref": "#/$defs/x", "description": "not"}}, "$defs": {"x": {"type": ["string", "null"], "enum": ["q", None]}}}
    assert left_out(named) is None
    assert left_out(shared) is None


@pytest.mark.long
@pytest.mark.parametrize(
    "form",
    [
        {"regex": "((a{1,2000}){1,2000}){1,2000}"},
        {"regex": "(" * 20_000 + "a" + ")" * 20_000},
        {"grammar": 'root ::= root root root | "a" | ""'},
        {"grammar": "root ::= " + "(" * 30_000 + '"a"' + ")" * 30_000},
        {"json": {"type": "string", "maxLength": 2_000_000_000, "minLength": 1_999_999_999}},
        {"json": {"enum": [f"{i:x}" * 3 for i in range(20_000)]}},
    ],
)
def test_hostile_grammars_end_alone(form: dict[str, Any]) -> None:
    """Whatever becomes of them, it is an answer or a refusal, and the next grammar compiles."""
    reason = None
    try:
        answer(form, max_tokens=8)
    except RequestError as error:
        reason = error.reason
    assert reason in (None, "structured_outputs_too_large", "structured_outputs_invalid")
    assert answer({"choice": [f"still{len(str(form)) % 7}"]}).finish_reason == "stop"


# ---- the compiling process -------------------------------------------------------------------------------------------


def test_each_grammar_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    forms, calls = byte_forms(), []
    compile_one = forms._compile
    monkeypatch.setattr(forms, "_compile", lambda constraint, blanks: calls.append(constraint) or compile_one(constraint, blanks))
    good, bad = SamplingParams(structured_outputs={"regex": "only once"}), SamplingParams(structured_outputs={"regex": "only once("})
    for _ in range(2):
        assert forms.form(good) is not None
        with pytest.raises(RequestError):
            forms.form(bad)
    assert len(calls) == 2


@pytest.mark.long
def test_a_lost_process_is_replaced() -> None:
    forms = new_forms()
    lost = process_of(forms, "before")
    os.kill(lost.pid, signal.SIGKILL)
    lost.wait()
    again = process_of(forms, "after")
    assert again.pid != lost.pid
    forms.close()
    assert again.poll() is not None
    with pytest.raises(RuntimeError, match="shutdown"):
        forms.form(SamplingParams(structured_outputs={"choice": ["too late"]}))


def process_of(forms: Forms, text: str) -> subprocess.Popen[bytes]:
    assert forms.form(SamplingParams(structured_outputs={"choice": [text]})) is not None
    assert forms._service is not None
    assert forms._service._process is not None
    return forms._service._process


def test_what_the_flag_says_holds_for_all_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    forms = Forms(byte_tokenizer(), VOCAB, StructuredConfig(disable_any_whitespace=True, enable_in_reasoning=True))
    given: list[bool] = []
    monkeypatch.setattr(forms, "_compile", lambda constraint, blanks: given.append(blanks) or byte_forms()._compile(constraint, blanks))
    form = forms.form(SamplingParams(structured_outputs=StructuredOutputs(choice=["a"], starts_after=(1, 2))))
    assert form is not None
    assert (given, form.starts_after) == ([False], ())


def test_what_is_kept_and_what_waits_has_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    forms, calls = new_forms(), []
    monkeypatch.setattr(forms, "_compile", lambda constraint, blanks: calls.append(constraint) or Refusal("no", "invalid_request"))
    monkeypatch.setattr(module, "_MOST_KEPT", 2)
    for text in ("a", "b", "c", "a"):
        with pytest.raises(RequestError):
            forms.form(SamplingParams(structured_outputs={"choice": [text]}))
    assert len(calls) == 4
    deadline = time.monotonic() + 10
    while len(forms._known) > 2:  # the last is tidied away after its answer
        assert time.monotonic() < deadline
        time.sleep(0.01)
    monkeypatch.setattr(module, "_MOST_WAITING", 0)
    with pytest.raises(QueueFullError):
        forms.form(SamplingParams(structured_outputs={"choice": ["d"]}))
