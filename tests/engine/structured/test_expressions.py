"""Regular expressions, alone and as patterns of schemas. Judges: re, jsonschema_rs."""

from __future__ import annotations

import json
import re

import jsonschema_rs
import pytest
from xgrammar import GrammarMatcher

from headway.engine.sampling_params import SamplingParams
from headway.errors import RequestError
from tests.engine.byte_tokenizer import EOS
from tests.engine.scripted_core import byte_forms
from tests.engine.structured.test_forms import answer, fits, one

_PATTERNS = [
    '^a"b$', r"^a\nb$", r"^a\\b$", r"^\t$", r"^[\t\n\"\\]{2}$", "^.{3}$", "^[^x]{2}\\u0041$", r'^\S\D\W"$', "^(?:a|b\\\\|c)+$", r"^\u{1F600}é$", r"^(?:ab\n|cd\t)$", r"^(?:x\n|a)b$",
]


@pytest.mark.parametrize("pattern", _PATTERNS)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_pattern_is_about_the_value_not_its_escapes(pattern: str, seed: int) -> None:
    text = answer({"json": {"type": "string", "pattern": pattern}}, seed=seed, logit_bias={EOS: 20.0, one('"'): 6.0}).text
    assert fits({"type": "string", "pattern": pattern.replace(r"\u{1F600}", "😀")}, text), text


def test_patterns_of_names_are_about_names() -> None:
    for schema in (
        {"type": "object", "patternProperties": {'^a"b$': {"type": "null"}}, "additionalProperties": False, "minProperties": 1},
        {"type": "object", "propertyNames": {"type": "string", "pattern": r"^a\tb$"}, "additionalProperties": {"type": "null"}, "minProperties": 1},
    ):
        form = byte_forms().form(SamplingParams(structured_outputs={"json": schema}))
        assert form is not None
        for name in ('a"b', "a\tb"):
            matcher = GrammarMatcher(form.grammar, terminate_without_stop_token=True)
            taken = matcher.accept_string(json.dumps({name: None})) and matcher.is_terminated()
            assert taken is bool(jsonschema_rs.is_valid(schema, {name: None}))


@pytest.mark.parametrize("expression", ["(?!a)b", "(?i)a", r"\bx", r"(a)\1", "a$b", "a^b", r"\Aa", r"a\Z", r"a\z", r"\N", r"\p{L}", "[^]", "(?P<n>a)"])
def test_what_an_expression_has_and_we_lack_is_refused_by_name(expression: str) -> None:
    for form in ({"regex": expression}, {"json": {"type": "string", "pattern": expression}}):
        with pytest.raises(RequestError, match=re.escape(repr(expression))) as refused:
            byte_forms().form(SamplingParams(structured_outputs=form))
        assert refused.value.reason == "structured_outputs_unsupported"


def test_a_dot_is_no_line_end() -> None:
    text = answer({"regex": "a.{8}b"}, logit_bias={one("\n"): 50.0}).text
    assert re.fullmatch("a.{8}b", text), text
