"""The normal form: reading it again gives the same document, and secrets do not show."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headway.router.config.load import Source, examine
from headway.router.config.normal_form import escaped, masked, normal_form, to_yaml
from headway.router.config.yaml_reading import read_yaml
from headway.router.generation.document_hash import document_hash
from tests.router.config.documents import BASE, document_of
from tests.router.config.generated_configs import DEFECTS, generated


@settings(max_examples=60, deadline=None)
@given(st.integers(len(DEFECTS), 10**6))
def test_round_trip(number: int) -> None:
    """Text -> document -> normal form -> text -> the same document, the same form, the same hash."""
    document = examine(Source(generated(number).text), {}).document
    assert document is not None
    form = normal_form(document)
    again = examine(Source(to_yaml(escaped(form))), {}).document
    assert again == document
    assert normal_form(again) == form
    assert document_hash(again) == document_hash(document)


@pytest.mark.parametrize(
    "settings", ["{model_catalog: {deployments: null}}", "{model_catalog: {deployments: {primary: null}}}", "{model_catalog: {}}", "{router: {}}"]
)
def test_nulls_that_mean_something_survive(settings: str) -> None:
    text = "version: v0.3\nglobal: "
    document = document_of(text + settings)
    again = document_of(to_yaml(normal_form(document)))
    assert again == document
    assert again.model_fields_set == document.model_fields_set
    assert normal_form(again) == normal_form(document)
    assert (document_hash(document) == document_hash(document_of(text + "{model_catalog: {}}"))) == (settings == "{model_catalog: {}}")


def test_defaults_and_older_spellings_mean_the_same() -> None:
    written = BASE.replace("systemone:\n      -", "decision:\n      -").replace("port: 8899", "port: 8899, address: 127.0.0.1, timeout: 300s")
    written = written.replace("type: systemone", "type: decision").replace("operator: AND", "operator: and")
    assert document_hash(document_of(written)) == document_hash(document_of(BASE))
    assert document_hash(document_of(BASE.replace("port: 8899", "port: 8898"))) != document_hash(document_of(BASE))


def test_secrets_are_masked_and_references_stay() -> None:
    data = {
        "api_key": "sk-1", "api_keys": ["a", "${B}"], "extra_headers": {"x-key": "s", "n": 1}, "password": "", "keys": [{"name": "n", "key": "k", "key_env": "E"}],
        "models": [{"name": "api_key"}],
    }  # fmt: skip
    assert masked(data) == {
        "api_key": "***", "api_keys": ["***", "${B}"], "extra_headers": {"x-key": "***", "n": 1}, "password": "", "keys": [{"name": "n", "key": "***", "key_env": "E"}],
        "models": [{"name": "api_key"}],
    }  # fmt: skip


def test_texts_that_look_like_something_else_are_quoted() -> None:
    data = {"a": "5", "b": "true", "c": "null", "d": "1e3", "e": " x", "f": "a: b", "g": "2026-01-01", "h": "", "i": "é发"}
    assert read_yaml(to_yaml(data), {}).data == data
